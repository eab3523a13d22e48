import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { latestView } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { requireProven } from "../require-proven.ts";
import { shortfallOf } from "../shortfall.ts";

/** The manifest of a run. Throws `invalid_argument` with the nearest name for a run that the archive does not have. */
export async function manifestOf(archive: Archive, run: RunRef): Promise<Manifest> {
  const manifest = await archive.manifest(run);
  if (manifest !== null) return manifest;
  const names = (await archive.manifests()).map(({ instanceId, runId }) => formatRun({ instanceId, runId }));
  const near = nearestName(formatRun(run), names);
  throw new RunvaultError("invalid_argument", `the archive has no run ${formatRun(run)}`, {
    place: { instance: run.instanceId, run: run.runId },
    hint:
      near === null
        ? "`runvault runs` lists its runs."
        : `Did you mean ${near}? \`runvault runs\` lists its runs.`,
  });
}

/** Why a table's rows cannot be relied on; null if they can. */
export function whyLacking({ tables }: Manifest, table: TableName): string | null {
  const entry = tables[table];
  if (entry === undefined) return `${table} was not archived`;
  if (entry.proven?.state === "ABSENT") return `${table} is absent: the gateway keeps no such table`;
  const rows = latestView(entry).parquet.reduce((sum, file) => sum + file.rows, 0);
  return entry.proven === null && rows === 0
    ? `${table} is ${entry.state}, and none of its rows arrived`
    : null;
}

/** Throws `incomplete`: if rows may be missing, nobody could tell why books do not balance. */
export function requireProvenBooks(manifest: Manifest, tables: readonly TableName[]): void {
  requireProven(shortfallOf([manifest], tables, false), "books need rows that are proven");
}
