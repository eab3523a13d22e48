import type { Holding, Manifest, Through } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import type { HeldTable } from "../../archive/write/held-tables.ts";
import type { RunJournal } from "../../archive/write/run-journal.ts";
import { RunvaultError } from "../../model/error.ts";
import { isIdentityMap } from "../../model/profile/identity-map.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import { routeThrough } from "./route-through.ts";

type Rows = Pick<Holding, "segments" | "quarantine" | "through">;

/**
 * Throws `profile_differs` if a run's archived rows came through another map than the source's rows do now: rows of two
 * maps would make a table that never existed. Sends no request.
 */
export function requireSameMap(
  source: Pick<HistorySource, "traits">,
  committed: Manifest,
  tables: readonly Pick<Table, "name">[],
): void {
  for (const { name } of tables) {
    const table = committed.tables[name];
    for (const rows of table === undefined ? [] : holdingsOf(table)) {
      if (isOtherMap(rows, routeThrough(source, name))) throw otherMap(committed, name, rows.through, null);
    }
  }
}

/**
 * Records in the journal which map this job's rows come through. Throws `profile_differs` if an interrupted job left rows
 * that came through another.
 */
export async function journalMaps(
  source: Pick<HistorySource, "traits">,
  journal: RunJournal,
  tables: readonly Pick<Table, "name">[],
): Promise<void> {
  for (const { name } of tables) {
    const held = journal.held.of(name);
    const through = routeThrough(source, name);
    if (isOtherMap(held, through)) throw otherMap(journal.run, name, held.through, journal.folder);
    if (keyOf(held.through) !== keyOf(through)) {
      // what was found with another map does not hold: neither empty windows nor a full scan
      await journal.dropSegments(name, [...held.segments]);
      if (held.fullScan !== null) await journal.setScan(name, null);
      held.grain = null;
    }
    if (JSON.stringify(held.through) !== JSON.stringify(through)) await journal.setThrough(name, through);
  }
}

function isOtherMap({ segments, quarantine, through }: Rows | HeldTable, now: Through | undefined): boolean {
  const holdsRows = segments.some(({ rows }) => rows > 0) || quarantine.length > 0;
  return holdsRows && keyOf(through) !== keyOf(now);
}

/** Identifies a map by the rows it makes. */
function keyOf(through: Through | undefined): string {
  const { map, fingerprint } = through ?? {};
  return map === undefined || isIdentityMap(map) ? "" : fingerprint!;
}

function otherMap(
  run: RunRef,
  table: TableName,
  through: Through | undefined,
  pending: string | null,
): RunvaultError {
  const before =
    through === undefined
      ? "the contract, without a profile"
      : through.profile === ""
        ? "another profile"
        : `the profile ${through.profile} as it was`;
  const rows =
    pending === null ? `the archive's rows of ${table}` : `rows of ${table} that an interrupted job fetched`;
  return new RunvaultError(
    "profile_differs",
    `${rows} came through ${before}, and the current map would make other rows of them`,
    {
      place: {
        instance: run.instanceId,
        run: run.runId,
        table,
        ...(pending === null ? {} : { file: pending }),
      },
      hint:
        pending === null
          ? `Apply the corrected profile to the archived rows with \`runvault maintain rebuild ${formatRun(run)} --profile FILE\`, or remove the run with \`runvault rm ${formatRun(run)}\` and fetch it again.`
          : "Finish the job with the profile that it began with, or delete that folder to fetch its rows again.",
    },
  );
}
