import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import type { Holding, Manifest, Segment, TableManifest } from "../../archive/manifest/manifest.ts";
import { type Nanoseconds, parseTime } from "../../model/time.ts";
import { type RunDescription, settledVersion } from "../run/run-description.ts";

/** Rows that a table's certificate covers, including those set aside. */
export function certifiedRows({ certificate }: Pick<Holding, "certificate">): number {
  return certificate === null ? 0 : certificate.rows + certificate.quarantined;
}

/**
 * True if rows of a table archived as finished may have changed in place since: its storage version has changed. Counts do
 * not show which rows changed, so all have to be fetched again.
 */
export function isOutdated(table: Holding, run: RunDescription): boolean {
  const version = settledVersion(run);
  // a certificate with an end was made while the run went on, and counts bring it up to date
  const settled = table.certificate !== null && table.certificate.until === null;
  return settled && version !== null && table.storageVersion !== version;
}

/** Identifies segments that are proven, or parts of proven ones. */
export function provenSegments(table: TableManifest | undefined): (segment: Segment) => boolean {
  const files = new Set(table?.proven?.segments.map(({ file }) => file));
  return ({ file, partOf }) => files.has(file) || (partOf !== undefined && files.has(partOf));
}

/** True while the run has the storage version under which the gateway said that it has no such table. */
export function isAbsentStill(table: TableManifest | undefined, run: RunDescription): boolean {
  const version = settledVersion(run);
  const { proven } = table ?? {};
  return proven?.state === "ABSENT" && version !== null && proven.storageVersion === version;
}

/** True when some table was last checked before an instant. */
export function isDue(committed: Manifest | null, before: Nanoseconds | null): boolean {
  if (committed === null || before === null) return false;
  // accepted tables stay unchecked
  const tables = Object.values(committed.tables).filter((table) => acceptanceOf(table) === null);
  const checked = tables.map(({ proven, attempt }) => proven?.certificate?.checkedAt ?? attempt.at);
  return checked.some((at) => parseTime(at) <= before);
}

/** Every stream ended well, but counts or a second pass disagreed: it is unknown which rows are right. */
export function isDisproven({ certificate }: Pick<Holding, "certificate">): boolean {
  return certificate?.proof === "none" && certificate.ended === "clean";
}

/** True if the source now marks as final a run that had ended without the mark: only now do no more rows come. */
export function isNowMarked(committed: Manifest | null, run: RunDescription): boolean {
  return committed?.run.unmarked === true && run.isMarkedFinal;
}
