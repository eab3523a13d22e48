import { chooseGrain, type Grain } from "../../archive/bucket.ts";
import type { Segment, TableManifest } from "../../archive/manifest/manifest.ts";
import { latestView, provenView, type TableView } from "../../archive/manifest/table-view.ts";
import type { HeldTable } from "../../archive/write/held-tables.ts";
import type { ScanRecord } from "../../archive/write/journal.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { StorageFacts } from "../../model/source.ts";
import { int64Max, type Nanoseconds } from "../../model/time.ts";
import type { RunDescription } from "../run/run-description.ts";
import { compareCounts } from "./changed-windows.ts";
import { certifiedRows, isDisproven, isOutdated, provenSegments } from "./committed-table.ts";
import { gapsBetween, type HeldWindow, heldWindows, sumRows, type Window, windowKey } from "./held-window.ts";
import { type SlicePlan, smallest } from "./slices.ts";

/** What is known about a table before any request. */
export interface PlanInput {
  readonly table: TableName;
  readonly run: RunDescription;
  /** Exclusive upper bound of ts_event; undefined for a finished run. */
  readonly until: Nanoseconds | undefined;
  /** The gateway's facts within that bound; null if it has none. */
  readonly facts: StorageFacts | null;
  /** True when the gateway counts rows in any window. */
  readonly isCounted: boolean;
  readonly held: Readonly<HeldTable>;
  /** The table as it is committed. */
  readonly former: TableManifest | undefined;
  readonly sliceRows: number;
  readonly acceptShrink: boolean;
  /** The earliest ts_event of the rows held that were never proven, where that was looked at. */
  readonly came?: Nanoseconds | undefined;
  /** True where the table can only be had whole, so that each window costs as much as all of it. */
  readonly comesWhole: boolean;
  /** True where nothing can be asked for while the run goes on. */
  readonly needsEnd: boolean;
  /** True where segments may be split; where not, one that the gateway's rows now begin in is not looked into. */
  readonly maySplit: boolean;
}

/** The gateway's answers so far to one plan's requests. */
export interface PlanAnswers {
  /** Rows that it counts in windows, by `windowKey`. */
  readonly counts: ReadonlyMap<string, number>;
  /** The findings of a full pass; `absent` if the gateway has no such table. */
  readonly fullScan?: ScanRecord | "absent";
  /** Segments that are held again as they were proven: of one that has no row ahead nothing more is. */
  readonly restored?: ReadonlySet<string>;
}

/** Either what must be asked before more can be said, or what to do. */
export type PlanStep = CountStep | ScanStep | SplitStep | RestoreStep | AbsentPlan | LapsedPlan | FetchPlan;

/** The rows in these windows must be counted. */
export interface CountStep {
  readonly kind: "count";
  readonly windows: readonly Window[];
}

/** Only a pass over all of the table can tell what it holds. */
export interface ScanStep {
  readonly kind: "scan";
}

/**
 * The gateway's rows begin within this segment now: its rows ahead of that are kept as they are, the others held against
 * the gateway's.
 */
export interface SplitStep {
  readonly kind: "split";
  readonly segment: Segment;
  readonly at: Nanoseconds;
}

/**
 * The gateway's rows begin at an instant now, and what was proven ahead of that is not all among the rows held, for an
 * attempt that failed asked for it again: it is held again as it was proven.
 */
export interface RestoreStep {
  readonly kind: "restore";
  readonly segments: readonly Segment[];
  readonly at: Nanoseconds;
}

/** The gateway keeps nothing of a table any more: what was proven stays. */
export interface LapsedPlan {
  readonly kind: "lapsed";
  readonly rows: number;
}

/** The gateway keeps no such table. */
export interface AbsentPlan {
  readonly kind: "absent";
  readonly drop: readonly Segment[];
}

/** The held segments to drop, and what to fetch then. */
export interface FetchPlan extends SlicePlan {
  readonly kind: "fetch";
  readonly drop: readonly Segment[];
  /** Rows to fetch. */
  readonly rows: number;
  /** Where the gateway's rows begin, if rows ahead of that are gone there; undefined where none are. */
  readonly gatewayFrom: Nanoseconds | undefined;
}

/** The extent of a table, by facts or by a full scan. */
interface Extent {
  readonly rows: number;
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
}

/**
 * Plans one table: a pure function of what is known and of what was answered so far, called again with each answer until
 * it asks no more. The job and its dry run both go by it.
 *
 * Throws `shrunk` or `history_unavailable` where the gateway holds less than the archive, and nobody accepted that, and
 * `incomplete` where the run has to end first.
 */
export function planTable(input: PlanInput, answers: PlanAnswers): PlanStep {
  const { held, run } = input;
  const found = extentOf(input, answers);
  if (input.needsEnd && input.until !== undefined && found !== "absent") throw goesOn();
  if (found === undefined) return { kind: "scan" };
  const lapsed = lapsedWhole(input, found);
  if (lapsed !== null) return lapsed;
  if (found === "absent" || found.rows === 0) refuseToVanish(input, found);
  if (found === "absent") {
    return { kind: "absent", drop: held.segments };
  }
  const gatewayFrom = retainedFrom(input, found);
  const straddling = held.segments.find((segment) => straddles(segment, gatewayFrom));
  if (straddling !== undefined && input.maySplit) {
    return { kind: "split", segment: straddling, at: gatewayFrom! };
  }
  const missing = input.maySplit ? missingAhead(input, gatewayFrom, answers.restored) : [];
  if (missing.length > 0) return { kind: "restore", segments: missing, at: gatewayFrom! };
  const isLapsed = (segment: Segment) =>
    segment === straddling || (gatewayFrom !== undefined && BigInt(segment.to) <= gatewayFrom);
  const compared = { ...held, segments: held.segments.filter((segment) => !isLapsed(segment)) };
  refuseToShrink(input, found.rows, gatewayFrom);

  const former = latestView(input.former);
  const formerFiles = filesOf(former);
  const isFormer = ({ file, partOf = file }: Segment) => formerFiles.has(file) || formerFiles.has(partOf);
  const isProvenSegment = provenSegments(input.former);
  const drop = new Set<Segment>();

  // no count tells which of its windows is wrong
  const disproven = former !== undefined && isDisproven(former) && !input.isCounted;
  // the gateway may have mended rows that were set aside, but for those that the operator took as they are
  const accepted = filesAside(provenView(input.former));
  const aside = new Set(former?.quarantine.filter(({ file }) => !accepted.has(file)).map(windowKey));
  // where windows are counted, what is held is compared before it is fetched again
  const outdated = former !== undefined && isOutdated(former, run) && !input.isCounted;
  for (const segment of compared.segments.filter(isFormer)) {
    if (disproven || outdated || aside.has(windowKey(segment))) drop.add(segment);
  }

  if (input.isCounted) {
    const isProven = ({ segments }: HeldWindow) => segments.every(isProvenSegment);
    // counts of several windows that were disproven may make up for one another
    const isSuspect = (window: HeldWindow) =>
      former !== undefined && isDisproven(former) && !isProven(window);
    const { ask, changed } = compareCounts(heldWindows(compared), answers.counts, isSuspect);
    if (ask.length > 0) return { kind: "count", windows: ask };
    for (const { window, rows } of changed) {
      // a proven window that lost rows, whatever others gained
      if (rows < window.rows && isProven(window) && !input.acceptShrink) {
        throw shrunk(rows, window.rows, ` in [${window.from}, ${window.to})`);
      }
      for (const segment of window.segments) drop.add(segment);
    }
  }

  const kept = heldWindows({
    ...compared,
    segments: compared.segments.filter((segment) => !drop.has(segment)),
  });
  return {
    kind: "fetch",
    drop: [...drop],
    // counts that came one after another may contradict each other
    rows: Math.max(0, found.rows - sumRows(kept)),
    gatewayFrom,
    ...slicePlan(input, found, kept),
  };
}

/** What was proven of a table of which the gateway keeps nothing any more; null where it keeps some. */
function lapsedWhole({ former, run, acceptShrink }: PlanInput, found: Extent | "absent"): LapsedPlan | null {
  const rows = provenRows(former);
  const isEmpty = found === "absent" || found.rows === 0;
  const state = former?.proven?.state;
  // rows that came after an OPEN table's horizon are gone with the others, and never came here: more may come while it goes on
  const isKept = run.final ? state === "COMPLETE" : state === "OPEN" && found !== "absent";
  return isEmpty && rows > 0 && isKept && !acceptShrink ? { kind: "lapsed", rows } : null;
}

/**
 * Where the gateway's rows begin, if rows that ever came are ahead of that and gone there, as they are where a gateway keeps
 * rows for some time only. Undefined where none are.
 */
function retainedFrom({ former, came }: PlanInput, { first }: Extent): Nanoseconds | undefined {
  if (first === undefined) return undefined;
  const { proven, attempt } = former ?? {};
  const before = attempt?.holding?.certificate?.first?.ts;
  const firsts = [proven?.certificate?.first?.ts, before, attempt?.came?.first, came];
  const isGone = firsts.some((ts) => ts != null && BigInt(ts) < first);
  // of what was ahead of it before, nothing may be here
  const from = proven?.certificate?.gatewayFrom ?? null;
  return isGone || (from !== null && BigInt(from) <= first) ? first : undefined;
}

function straddles({ from, to, rows }: Segment, at: Nanoseconds | undefined): boolean {
  return at !== undefined && rows > 0 && BigInt(from) < at && BigInt(to) > at;
}

/** The table's extent; undefined if only a full scan can tell. */
function extentOf(
  { table, facts, held, until }: PlanInput,
  answers: PlanAnswers,
): Extent | "absent" | undefined {
  if (facts !== null) {
    const own = facts.get(table);
    return own === undefined ? "absent" : { rows: Number(own.rows), first: own.first, last: own.last };
  }
  const before = held.fullScan?.until === (until?.toString() ?? null) ? held.fullScan : undefined;
  const fullScan = answers.fullScan ?? before;
  if (fullScan === undefined || fullScan === "absent") return fullScan;
  const time = (text: string | null) => (text === null ? undefined : BigInt(text));
  return { rows: fullScan.rows, first: time(fullScan.first), last: time(fullScan.last) };
}

function slicePlan(input: PlanInput, extent: Extent, kept: readonly HeldWindow[]): SlicePlan {
  const { until, facts, sliceRows, comesWhole } = input;
  const { rows, first, last } = extent;
  const grain = grainOf(input, extent);
  if (first === undefined || last === undefined) {
    const nothing = { from: 0n, to: 0n };
    return { grain, gaps: [], span: nothing, rowsTo: 0n, spanRows: rows, stepNs: 1n };
  }
  const span = { from: first, to: until ?? smallest(last + 1n, int64Max) };
  // rows end where they were seen to: a grid over what lies behind them would leave all of them in one slice
  const rowsTo = facts === null && !comesWhole ? smallest(span.to, last + 1n) : span.to;
  const lengthNs = rowsTo - span.from;
  // after a full scan, which asked for all at once, two slices at least: a second pass has to ask in another way
  const most = facts === null && !comesWhole ? (lengthNs + 1n) / 2n : lengthNs;
  const byRows = (lengthNs * BigInt(sliceRows)) / BigInt(Math.max(1, rows)) + 1n;
  const stepNs = rows <= sliceRows || comesWhole ? most : smallest(most, byRows);
  const gaps = gapsBetween(kept, span.from, span.to);
  return { grain, gaps, span, rowsTo, spanRows: rows, stepNs: stepNs < 1n ? 1n : stepNs };
}

/** The grain of a table's buckets: decided before, or by its extent now. */
function grainOf({ held, run, comesWhole }: PlanInput, { rows, first, last }: Extent): Grain {
  if (held.grain !== null) return held.grain;
  if (comesWhole) return "all";
  if (first === undefined || last === undefined) return run.final ? "all" : "year";
  return chooseGrain({ rows, first, last, final: run.final });
}

/** The gateway may say that it keeps no row of a table only where it has never given one. */
function refuseToVanish({ former, held, acceptShrink }: PlanInput, found: Extent | "absent"): void {
  if (acceptShrink) return;
  const hint = "If the rows were removed from the gateway on purpose, run again with --accept-shrink.";
  const said = found === "absent" ? "no such table" : "no rows of the table";
  if (provenRows(former) > 0) throw vanished(said);
  if (segmentsEver({ former, held }).some(({ rows }) => rows > 0) || former?.attempt.came !== undefined) {
    const code = found === "absent" ? "history_unavailable" : "unverified";
    throw new RunvaultError(code, `the gateway says that it has ${said}, but sent rows of it before`, {
      hint,
    });
  }
}

function refuseToShrink(input: PlanInput, rows: number, gatewayFrom: Nanoseconds | undefined): void {
  if (input.acceptShrink) return;
  const proven = provenView(input.former);
  if (proven === undefined) return;
  const windows = heldWindows(proven).filter(({ to }) => gatewayFrom === undefined || to > gatewayFrom);
  // a window that was split is counted whole here: the parts of it are compared one by one
  const isSplit = gatewayFrom !== undefined && windows.some(({ from }) => from < gatewayFrom);
  const committed = sumRows(isSplit ? windows.filter(({ from }) => from >= gatewayFrom) : windows);
  if (rows < committed) throw shrunk(rows, committed, "");
}

/**
 * What was proven and is gone at the gateway by now, as far as it is not among the rows held: an attempt that went wrong let
 * go of it, or its files are lost.
 */
function missingAhead(
  { former, held, acceptShrink }: PlanInput,
  gatewayFrom: Nanoseconds | undefined,
  restored: PlanAnswers["restored"],
): readonly Segment[] {
  if (gatewayFrom === undefined || acceptShrink) return [];
  const isMissing = (segment: Segment) => {
    if (restored?.has(segment.file)) return false;
    const parts = held.segments.filter(
      ({ file, partOf }) => file === segment.file || partOf === segment.file,
    );
    // behind the gateway's first row it may be fetched anew
    if (BigInt(segment.to) > gatewayFrom)
      return BigInt(segment.from) < gatewayFrom && !parts.some(({ to }) => BigInt(to) >= gatewayFrom);
    return parts.reduce((sum, { rows }) => sum + rows, 0) < segment.rows;
  };
  return former?.proven?.segments.filter((segment) => segment.rows > 0 && isMissing(segment)) ?? [];
}

/** Segments held, and those of the latest attempt that count no more, for they are lost or doubted: rows came with them. */
function segmentsEver({ former, held }: Pick<PlanInput, "former" | "held">): readonly Segment[] {
  return [...held.segments, ...(former?.attempt.holding?.segments ?? [])];
}

function provenRows(former: TableManifest | undefined): number {
  const proven = provenView(former);
  return proven === undefined ? 0 : certifiedRows(proven);
}

function goesOn(): RunvaultError {
  return new RunvaultError(
    "incomplete",
    "the run goes on, and its pages by number, which no end of a time window closes, would move meanwhile",
    {
      hint: "Archive the run once it has ended; --finished takes such runs alone. If the gateway takes both time bounds, name them in the profile's parameters, as from and to.",
    },
  );
}

/** The error when the gateway has none of the proven rows. */
export function vanished(said: string): RunvaultError {
  return new RunvaultError(
    "shrunk",
    `the gateway says that it has ${said}, but the archive holds rows of it`,
    { hint: "If the rows were removed from the gateway on purpose, run again with --accept-shrink." },
  );
}

/** The error when the gateway has fewer rows than are proven. */
export function shrunk(now: number, held: number, where: string): RunvaultError {
  return new RunvaultError(
    "shrunk",
    `the gateway now has ${now} rows${where}, the archive ${held}: the archive never shrinks by itself`,
    { hint: "If the rows were removed from the gateway on purpose, run again with --accept-shrink." },
  );
}

function filesOf(table: TableView | undefined): ReadonlySet<string> {
  return new Set(table?.segments.map(({ file }) => file));
}

function filesAside(table: TableView | undefined): ReadonlySet<string> {
  return new Set(table?.quarantine.map(({ file }) => file));
}
