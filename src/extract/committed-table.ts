import type { TableManifest } from "../archive/manifest.ts";
import { type RunKnowledge, settledVersion } from "./run-knowledge.ts";

/** Rows that a table's certificate accounts for, those set aside among them. */
export function certifiedRows({ certificate }: TableManifest): number {
  return certificate === null ? 0 : certificate.rows + certificate.quarantined;
}

/**
 * True when rows of a table that was archived as finished may have changed in place since: its storage version is
 * another, and counts do not tell which rows did, so that only fetching all of them again brings them.
 */
export function isOutdated(table: TableManifest, run: RunKnowledge): boolean {
  const version = settledVersion(run);
  // up to an instant: archived while the run went on, and brought up to date by counts
  const settled = table.certificate !== null && table.certificate.until === null;
  return settled && version !== null && table.storageVersion !== version;
}

/** Every stream ended well, and yet counts or a second pass did not agree: nobody knows which rows are right. */
export function isDisproven({ certificate }: TableManifest): boolean {
  return certificate?.proof === "none" && certificate.ended === "clean";
}
