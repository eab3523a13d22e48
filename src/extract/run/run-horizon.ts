import type { Certificate, Manifest } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { HistorySource, RunRef, StorageFacts } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import { isDue, isNowMarked } from "../plan/committed-table.ts";
import { isRefusal, shortestRefusedNs, type TableAsks } from "../plan/table-asks.ts";
import { isSaidNone } from "../plan/wanted-tables.ts";
import { isRefusedByRoute } from "../proof/absent-table.ts";
import { isProofEnough, type RequiredProof } from "../proof/required-proof.ts";
import type { SeenSource } from "../proof/seen-source.ts";
import { type RunDescription, settledVersion } from "./run-description.ts";

/** Rows in a window by the gateway's facts. */
export type CountRows = (from: Nanoseconds, to: Nanoseconds) => Promise<number>;

/** What can be requested of a run, and up to where, before fetching any rows. */
export interface RunHorizon {
  readonly run: RunDescription;
  /** Exclusive upper bound of ts_event; undefined for a finished run. */
  readonly until: Nanoseconds | undefined;
  /** Facts within the horizon; null if the source has none. */
  readonly facts: StorageFacts | null;
  /**
   * True if neither a version nor a count shows whether rows still come, or whether those of an interrupted job are still
   * right: only time does.
   */
  readonly isUnmarked: boolean;
  /** Facts were shown to keep to time bounds. */
  readonly areCountsBounded: boolean;
  /** Requests the facts again. */
  readonly factsNow: () => Promise<StorageFacts | null>;
  /** Rows of a table in any window; undefined if there are no facts, or if they are not known to keep to bounds. */
  readonly countRows: (table: Table) => CountRows | undefined;
}

/** The source of facts, perhaps watched. */
type Facts = Pick<HistorySource, "facts">;

/**
 * Asks the source what it holds of a run. Rows before `settled` no longer arrive late. `onBounded` is called if facts keep
 * to time bounds, before any that rely on it are asked for.
 */
export async function lookAhead(
  source: Facts,
  run: RunDescription,
  committed: Manifest | null,
  settled: Nanoseconds,
  seen: SeenSource,
  {
    signal,
    fetching,
    onBounded,
  }: {
    readonly signal: AbortSignal;
    readonly fetching: AbortSignal;
    readonly onBounded?: () => void;
  },
): Promise<RunHorizon> {
  const whole = await source.facts(run, {}, fetching);
  let counts: WindowCounts = "unknown";
  const bounded =
    whole !== null &&
    (await seen.keepsToBounds(async () => {
      counts = await windowCounts(source, run, whole, fetching);
      return counts === "kept";
    }));
  if (bounded) onBounded?.();
  const until = run.final ? undefined : horizonOf(whole, settled, committed);
  const factsNow = async (ends: AbortSignal = signal) => {
    if (until === undefined) return await source.facts(run, {}, ends);
    // a source that counts no windows may accept a horizon because its unit happens to fit: that shows nothing
    return !bounded && counts === "not told" ? null : await source.facts(run, { to: until }, ends);
  };
  return {
    run,
    until,
    facts: until === undefined || whole === null ? whole : await factsNow(fetching),
    isUnmarked: run.storageVersion === undefined && whole === null,
    areCountsBounded: bounded,
    factsNow: () => factsNow(),
    countRows: (table) => (bounded ? countRowsOf(source, run, table, signal) : undefined),
  };
}

/** What a table must have for a job to leave it as it is. */
export interface WantedProof {
  readonly require: RequiredProof;
  readonly fingerprint: boolean;
  readonly recheckBefore: Nanoseconds | null;
}

/**
 * Whether the archive holds a finished run with the wanted proof and of the storage version that the source lists; null if
 * only the version is missing on one side.
 */
export function isOfListedVersion(
  committed: Manifest,
  run: RunDescription,
  wanted: readonly Table[],
  asked: WantedProof,
): boolean | null {
  if (!committed.run.final || !run.final || isNowMarked(committed, run)) return false;
  if (isDue(committed, asked.recheckBefore)) return false;
  const done = wanted.every(({ name }) => {
    const table = committed.tables[name];
    if (table?.attempt.outcome !== "ok" || table.proven === null) return false;
    const { state, certificate } = table.proven;
    if (state === "ABSENT") return true;
    if (!isProofEnough(certificate?.proof ?? "none", asked.require)) return false;
    if (asked.fingerprint && certificate?.rowHash == null) return false;
    return state === "COMPLETE" && !isToBeAskedAgain(certificate);
  });
  if (!done) return false;
  const version = settledVersion(run);
  const versions = wanted.map(({ name }) => committed.tables[name]!.proven!.storageVersion);
  if (version === null || versions.includes(null)) return null;
  return versions.every((one) => one === version);
}

/**
 * True if the archive holds a finished run as the source has it now: by the storage version or, without one, by its facts'
 * counts. A source with neither shows no change, so COMPLETE tables are taken as still complete, while ABSENT ones are
 * asked for again. Warns of tables that are gone entirely.
 */
export async function isUpToDate(
  source: Facts,
  committed: Manifest,
  run: RunDescription,
  wanted: readonly Table[],
  asked: WantedProof,
  asks: Omit<TableAsks, "table">,
  warn: (text: string) => void = () => {},
): Promise<boolean> {
  const isOfVersion = isOfListedVersion(committed, run, wanted, asked);
  if (isOfVersion !== null) return isOfVersion;
  const proven = wanted.map(({ name }) => [name, committed.tables[name]!.proven!] as const);
  const facts = await source.facts(run, {}, asks.signal);
  const counted = (name: TableName) => facts?.get(name)?.rows ?? 0n;
  // a finished run's table that the gateway no longer has stays as it was proven
  const isGone = (name: TableName) => facts !== null && counted(name) === 0n;
  const isAsCounted =
    facts === null ||
    proven.every(([name, { certificate }]) => {
      if (isGone(name)) return true;
      if (certificate === null || counted(name).toString() !== certificate.gatewayRows) return false;
      // rows set aside may be the first or the last
      if (certificate.quarantined > 0) return true;
      const { first, last } = facts.get(name) ?? {};
      const begins = certificate.gatewayFrom ?? certificate.first?.ts;
      return first?.toString() === begins && last?.toString() === certificate.last?.ts;
    });
  const absent = wanted.filter(({ name }) => committed.tables[name]!.proven!.state === "ABSENT");
  if (!isAsCounted || !(await areAbsentStill(absent, asks))) return false;
  for (const [name, { certificate }] of proven) {
    const rows = certificate?.rows ?? 0;
    if (isGone(name) && rows > 0)
      warn(`the gateway no longer has the ${countText(rows, "row")} of ${name}; what was proven stays`);
  }
  return true;
}

/** Whether each of these tables' own routes still says that the run has no such table: no version vouches for that. */
async function areAbsentStill(tables: readonly Table[], asks: Omit<TableAsks, "table">): Promise<boolean> {
  try {
    for (const table of tables) {
      if (!isSaidNone(asks.source, table) && !(await isRefusedByRoute({ ...asks, table }, undefined)))
        return false;
    }
    return true;
  } catch (thrown) {
    asks.signal.throwIfAborted();
    // the table's job asks again and reports it
    if (RunvaultError.from(thrown).scope === "table") return false;
    throw thrown;
  }
}

/** A certificate of no rows without grounds: an earlier format took an empty answer as proof. */
function isToBeAskedAgain(certificate: Certificate | null): boolean {
  return certificate?.rows === 0 && certificate.proof === "exhausted" && certificate.restsOn.length === 0;
}

/** Whether facts keep to bounds, ignore them, do not exist for windows, or nothing shows which. */
type WindowCounts = "kept" | "ignored" | "not told" | "unknown";

/**
 * Asks for windows before the first row and after the last, where there are no rows. A gateway that counts rows in the
 * first ignores `to`, in the second `from`. Without any row nothing can be learned.
 */
async function windowCounts(
  source: Facts,
  run: RunRef,
  whole: StorageFacts,
  signal: AbortSignal,
): Promise<WindowCounts> {
  const times = [...whole.values()].flatMap(({ first, last }) =>
    first === undefined || last === undefined ? [] : [first, last],
  );
  if (times.length === 0) return "unknown";
  const first = times.reduce((a, b) => (a < b ? a : b));
  const last = times.reduce((a, b) => (a > b ? a : b));
  const empty = [
    { from: first - 2n, to: first - 1n },
    { from: last + 1n, to: last + 2n },
  ].filter(({ from, to }) => from >= int64Min && to <= int64Max);
  for (const window of empty) {
    const facts = await source.facts(run, window, signal);
    if (facts === null) return "not told";
    if ([...facts.values()].some(({ rows }) => rows > 0n)) return "ignored";
  }
  return "kept";
}

/** The exclusive end of what is requested of a run that has not ended: more rows may still arrive after it. */
function horizonOf(
  facts: StorageFacts | null,
  settled: Nanoseconds,
  committed: Manifest | null,
): Nanoseconds {
  const lasts = [...(facts?.values() ?? [])].flatMap(({ last }) => (last === undefined ? [] : [last]));
  // the last timestamp is included once it is too old for more rows
  const behind = lasts.length === 0 ? settled : lasts.reduce((a, b) => (a > b ? a : b)) + 1n;
  const horizon = behind < settled ? behind : settled;
  // a clock that was set back must not cut off held rows
  const held = committed?.horizon == null ? undefined : BigInt(committed.horizon);
  return held !== undefined && held > horizon ? held : horizon;
}

/** Counts in halves a window that the source refuses, because some gateways answer at most a month at once. */
export function countRowsOf(source: Facts, run: RunRef, table: Table, signal: AbortSignal): CountRows {
  const countAtOnce: CountRows = async (from, to) => {
    const facts = await source.facts(run, { from, to }, signal);
    if (facts === null)
      throw new RunvaultError("incomplete", "the gateway no longer counts the rows of a window");
    return Number(facts.get(table.name)?.rows ?? 0n);
  };
  const count: CountRows = async (from, to) => {
    try {
      return await countAtOnce(from, to);
    } catch (error) {
      if (!isRefusal(error) || to - from <= shortestRefusedNs) throw error;
      const middle = from + (to - from) / 2n;
      return (await count(from, middle)) + (await count(middle, to));
    }
  };
  return count;
}
