import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import type { Acceptance, Manifest } from "../../archive/manifest/manifest.ts";
import type { ManifestFile } from "../../archive/manifest/manifest-files.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";
import type { RunDescription } from "./run-description.ts";

/** Which of the operator's acceptances of a run's tables still stand. */
export interface Acceptances {
  /** Tables that a job works on: all wanted ones, except those that stay accepted. */
  readonly open: readonly Table[];
  /** Messages about acceptances that have ended. */
  readonly ended: readonly string[];
}

/** The same from the run's list and manifest alone, as far as these show it. */
export interface ListedAcceptances {
  readonly open: readonly Table[];
  /** False if only the source's facts can show whether an accepted table is still the same. */
  readonly isVouched: boolean;
}

export function listedAcceptances(
  committed: Manifest,
  run: RunDescription,
  wanted: readonly Table[],
): ListedAcceptances {
  const open: Table[] = [];
  let isVouched = true;
  for (const table of wanted) {
    const accepted = acceptanceOf(committed.tables[table.name]);
    const end = accepted === null ? null : endOf(accepted, run);
    if (end === undefined) isVouched = false;
    else if (accepted === null || end !== null) open.push(table);
  }
  return { open, isVouched };
}

/**
 * The tables that a job works on, by the source's facts if there is no version. An accepted table is left alone until it
 * changes: its storage version or, without one, its row count, or until files of it are lost.
 */
export async function standingAcceptances(
  source: Pick<HistorySource, "facts">,
  committed: Manifest | null,
  run: RunDescription,
  wanted: readonly Table[],
  lost: readonly ManifestFile[],
  signal: AbortSignal,
): Promise<Acceptances> {
  const open: Table[] = [];
  const ended: string[] = [];
  for (const table of wanted) {
    const { name } = table;
    const accepted = acceptanceOf(committed?.tables[name]);
    if (accepted === null) {
      open.push(table);
      continue;
    }
    const isLost = lost.some((file) => file.table === name);
    let end = isLost ? "files of it are missing or damaged" : endOf(accepted, run);
    if (end === undefined) end = await endByFacts(source, name, accepted, run, signal);
    if (end === null) continue;
    open.push(table);
    ended.push(`${name} is no longer accepted as it is: ${end}`);
  }
  return { open, ended };
}

/** Why an acceptance has ended; null if it stands, undefined if only facts can tell. */
function endOf({ final, storageVersion: then }: Acceptance, run: RunDescription): string | null | undefined {
  if (final !== run.final) return run.final ? "the run has ended since" : "the run is growing again";
  const now = run.storageVersion ?? null;
  if (then !== null && now !== null) {
    return then === now
      ? null
      : `the storage version was ${JSON.stringify(then)}, and is now ${JSON.stringify(now)}`;
  }
  // rows come, and nothing shows whether any are of this table
  return run.final ? undefined : "the run is still growing";
}

async function endByFacts(
  source: Pick<HistorySource, "facts">,
  name: TableName,
  { gatewayRows }: Acceptance,
  run: RunDescription,
  signal: AbortSignal,
): Promise<string | null> {
  const facts = await source.facts(run, {}, signal);
  // if the source counts nothing, no change of a finished run can be seen
  if (facts === null) return null;
  const now = (facts.get(name)?.rows ?? 0n).toString();
  if (now === gatewayRows) return null;
  return `the gateway ${gatewayRows === null ? "had not counted it" : `counted ${gatewayRows} rows of it`}, and now counts ${now}`;
}
