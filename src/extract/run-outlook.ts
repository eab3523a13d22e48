import type { Manifest } from "../archive/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import type { HistorySource, RunRef, StorageFacts } from "../model/source.ts";
import type { Table } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import type { CountRows } from "./plan.ts";
import type { RunKnowledge } from "./run-knowledge.ts";

/** What can be asked of a run, and up to where, before any of its rows is fetched. */
export interface RunOutlook {
  readonly run: RunKnowledge;
  /** Exclusive upper bound of ts_event; undefined for a finished run. */
  readonly until: Nanoseconds | undefined;
  /** Facts within the horizon; null where the source has none. */
  readonly facts: StorageFacts | null;
  /** Asks for them again. */
  readonly factsNow: () => Promise<StorageFacts | null>;
  /** Rows of a table in any window; undefined where there are no facts, or they ignore bounds. */
  readonly countRows: (table: Table) => CountRows | undefined;
  /** The source says that rows changed in place, and their counts do not tell which. */
  readonly refetchAll: boolean;
}

/** Asks the source what it holds of a run. `settleNs` is how long rows of a run that goes on may arrive late. */
export async function lookAhead(
  source: HistorySource,
  run: RunKnowledge,
  committed: Manifest | null,
  wanted: readonly Table[],
  settled: Nanoseconds,
  signal: AbortSignal,
): Promise<RunOutlook> {
  const whole = await source.facts(run, {}, signal);
  const bounded = whole !== null && (await keepsToBounds(source, run, whole, signal));
  const until = run.final ? undefined : horizonOf(whole, settled, committed);
  const factsNow = () => source.facts(run, until === undefined ? {} : { to: until }, signal);
  return {
    run,
    until,
    facts: until === undefined || whole === null ? whole : await factsNow(),
    factsNow,
    countRows: (table) => (bounded ? countRowsOf(source, run, table, signal) : undefined),
    refetchAll: changedInPlace(committed, run, whole, wanted),
  };
}

/** True when the archive holds a finished run as the source has it now. */
export function isUpToDate(
  committed: Manifest,
  run: RunKnowledge,
  wanted: readonly Table[],
  asked: { readonly requireCounted: boolean; readonly fingerprint: boolean },
): boolean {
  if (!committed.run.final || !run.final) return false;
  if (committed.run.storageVersion !== (run.storageVersion ?? null)) return false;
  return wanted.every(({ name }) => {
    const table = committed.tables[name];
    if (table?.state === "ABSENT") return true;
    const certificate = table?.certificate;
    if (asked.requireCounted && certificate?.proof !== "counted") return false;
    if (asked.fingerprint && certificate?.rowHash == null) return false;
    return table?.state === "COMPLETE";
  });
}

/**
 * True when a finished run's storage version changed and no table's count did: then rows changed in place, and only
 * fetching all again brings them.
 */
function changedInPlace(
  committed: Manifest | null,
  run: RunKnowledge,
  facts: StorageFacts | null,
  wanted: readonly Table[],
): boolean {
  if (committed === null || facts === null || !committed.run.final || !run.final) return false;
  if (committed.run.storageVersion === (run.storageVersion ?? null)) return false;
  return wanted.every(({ name }) => {
    const certificate = committed.tables[name]?.certificate;
    const held = certificate == null ? undefined : certificate.rows + certificate.quarantined;
    return held === undefined || Number(facts.get(name)?.rows ?? 0n) === held;
  });
}

/** Asks for a window ahead of the first row, where there is nothing: a gateway that counts rows there ignores bounds. */
async function keepsToBounds(
  source: HistorySource,
  run: RunRef,
  whole: StorageFacts,
  signal: AbortSignal,
): Promise<boolean> {
  const firsts = [...whole.values()].flatMap(({ first }) => (first === undefined ? [] : [first]));
  if (firsts.length === 0) return true;
  const first = firsts.reduce((a, b) => (a < b ? a : b));
  const ahead = await source.facts(run, { from: first - 2n, to: first - 1n }, signal);
  return ahead !== null && [...ahead.values()].every(({ rows }) => rows === 0n);
}

/** The exclusive end of what is asked of a run that goes on: rows behind it may still be joined by others. */
function horizonOf(
  facts: StorageFacts | null,
  settled: Nanoseconds,
  committed: Manifest | null,
): Nanoseconds {
  const lasts = [...(facts?.values() ?? [])].flatMap(({ last }) => (last === undefined ? [] : [last]));
  const largest = lasts.length === 0 ? settled : lasts.reduce((a, b) => (a > b ? a : b));
  const horizon = largest < settled ? largest : settled;
  // a clock that was set back must not cut off what is held already
  const held = committed?.horizon == null ? undefined : BigInt(committed.horizon);
  return held !== undefined && held > horizon ? held : horizon;
}

function countRowsOf(source: HistorySource, run: RunRef, table: Table, signal: AbortSignal): CountRows {
  return async (from, to) => {
    const facts = await source.facts(run, { from, to }, signal);
    if (facts === null)
      throw new RunvaultError("incomplete", "the gateway's storage facts went away in mid-job");
    return Number(facts.get(table.name)?.rows ?? 0n);
  };
}
