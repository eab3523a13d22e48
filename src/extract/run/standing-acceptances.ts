import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import type { Acceptance, Manifest } from "../../archive/manifest/manifest.ts";
import type { ManifestFile } from "../../archive/manifest/manifest-files.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";
import type { RunDescription } from "./run-description.ts";

/** What became of the operator's acceptances of a run's tables. */
export interface Acceptances {
  /** Tables that a job has to do with: all that are wanted but for those that stay as they are. */
  readonly open: readonly Table[];
  /** What there is to tell of acceptances that are over. */
  readonly ended: readonly string[];
}

/** The same by the run's list and manifest alone, as far as these tell. */
export interface ListedAcceptances {
  readonly open: readonly Table[];
  /** False where only the source's facts tell whether something that was accepted is still what it was. */
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
 * The tables that a job has to do with, by the source's facts where there is no version to go by. What was accepted is left alone until it is something
 * else: another storage version or, without, another count; or files of it that are not there any more.
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

/** Why an acceptance is over; null where it stands, undefined where only facts tell. */
function endOf({ final, storageVersion: then }: Acceptance, run: RunDescription): string | null | undefined {
  if (final !== run.final) return run.final ? "the run has ended since" : "the run goes on again";
  const now = run.storageVersion ?? null;
  if (then !== null && now !== null) {
    return then === now
      ? null
      : `the storage version was ${JSON.stringify(then)}, and is now ${JSON.stringify(now)}`;
  }
  // rows come, and nothing tells which of them are of this table
  return run.final ? undefined : "the run goes on";
}

async function endByFacts(
  source: Pick<HistorySource, "facts">,
  name: TableName,
  { gatewayRows }: Acceptance,
  run: RunDescription,
  signal: AbortSignal,
): Promise<string | null> {
  const facts = await source.facts(run, {}, signal);
  // of a finished run of which the source counts nothing, nothing is known to change
  if (facts === null) return null;
  const now = (facts.get(name)?.rows ?? 0n).toString();
  if (now === gatewayRows) return null;
  return `the gateway ${gatewayRows === null ? "had not counted it" : `counted ${gatewayRows} rows of it`}, and now counts ${now}`;
}
