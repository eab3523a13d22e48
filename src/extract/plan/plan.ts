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
  /** The earliest ts_event of held rows that were never proven, if known. */
  readonly came?: Nanoseconds | undefined;
  /** True if the table can only be fetched whole: each window costs as much as the table. */
  readonly comesWhole: boolean;
  /** True if nothing can be requested before the run has ended. */
  readonly needsEnd: boolean;
  /** True if segments may be split. If not, a segment within which the gateway's rows now begin is not compared. */
  readonly maySplit: boolean;
}

/** The gateway's answers so far to one plan's requests. */
export interface PlanAnswers {
  /** Counted rows by window, see `windowKey`. */
  readonly counts: ReadonlyMap<string, number>;
  /** The findings of a full pass; `absent` if the gateway has no such table. */
  readonly fullScan?: ScanRecord | "absent";
  /** Segments already brought back as proven: not again, even if none of their rows lay before the gateway's first. */
  readonly restored?: ReadonlySet<string>;
}

/** Either a question to answer first, or what to do. */
export type PlanStep = CountStep | ScanStep | SplitStep | RestoreStep | AbsentPlan | LapsedPlan | FetchPlan;

/** The rows in these windows must be counted. */
export interface CountStep {
  readonly kind: "count";
  readonly windows: readonly Window[];
}

/** Only a pass over the whole table can tell what it holds. */
export interface ScanStep {
  readonly kind: "scan";
}

/**
 * The gateway's rows now begin within this segment: earlier rows are kept as they are, the others compared with the
 * gateway's.
 */
export interface SplitStep {
  readonly kind: "split";
  readonly segment: Segment;
  readonly at: Nanoseconds;
}

/**
 * The gateway's rows now begin at `at`, and some rows proven before that are no longer held, because a failed attempt
 * dropped them to fetch them again. They are held again as they were proven.
 */
export interface RestoreStep {
  readonly kind: "restore";
  readonly segments: readonly Segment[];
  readonly at: Nanoseconds;
}

/** The gateway no longer has any of the table's rows: the proven ones stay. */
export interface LapsedPlan {
  readonly kind: "lapsed";
  readonly rows: number;
}

/** The gateway has no such table. */
export interface AbsentPlan {
  readonly kind: "absent";
  readonly drop: readonly Segment[];
}

/** The held segments to drop, and what to fetch afterwards. */
export interface FetchPlan extends SlicePlan {
  readonly kind: "fetch";
  readonly drop: readonly Segment[];
  /** Rows to fetch. */
  readonly rows: number;
  /** Where the gateway's rows begin, if it has dropped earlier ones; undefined if not. */
  readonly gatewayFrom: Nanoseconds | undefined;
}

/** The extent of a table, by facts or by a full scan. */
interface Extent {
  readonly rows: number;
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
}

/**
 * Plans one table: a pure function of what is known and answered so far, called again with each answer until it has no more
 * questions. The job and its dry run both use it.
 *
 * Throws `shrunk` or `history_unavailable` if the gateway holds less than the archive without `acceptShrink`, and
 * `incomplete` if the run has to end first.
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

  // no count shows which window is wrong
  const disproven = former !== undefined && isDisproven(former) && !input.isCounted;
  // rows set aside may have been mended at the gateway; those that the operator accepted stay as they are
  const accepted = filesAside(provenView(input.former));
  const aside = new Set(former?.quarantine.filter(({ file }) => !accepted.has(file)).map(windowKey));
  // where windows are counted, held rows are compared before they are fetched again
  const outdated = former !== undefined && isOutdated(former, run) && !input.isCounted;
  for (const segment of compared.segments.filter(isFormer)) {
    if (disproven || outdated || aside.has(windowKey(segment))) drop.add(segment);
  }

  if (input.isCounted) {
    const isProven = ({ segments }: HeldWindow) => segments.every(isProvenSegment);
    // the counts of several disproven windows may cancel out
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

/** The plan for a table whose proven rows the gateway no longer has; null if it still has some. */
function lapsedWhole({ former, run, acceptShrink }: PlanInput, found: Extent | "absent"): LapsedPlan | null {
  const rows = provenRows(former);
  const isEmpty = found === "absent" || found.rows === 0;
  const state = former?.proven?.state;
  // an OPEN table of a final run is not kept: rows after its horizon are gone as well, and were never archived
  const isKept = run.final ? state === "COMPLETE" : state === "OPEN" && found !== "absent";
  return isEmpty && rows > 0 && isKept && !acceptShrink ? { kind: "lapsed", rows } : null;
}

/**
 * Where the gateway's rows begin, if earlier rows once came and are gone there, as with a gateway that keeps rows only for
 * a time. Undefined if none are gone.
 */
function retainedFrom({ former, came }: PlanInput, { first }: Extent): Nanoseconds | undefined {
  if (first === undefined) return undefined;
  const { proven, attempt } = former ?? {};
  const before = attempt?.holding?.certificate?.first?.ts;
  const firsts = [proven?.certificate?.first?.ts, before, attempt?.came?.first, came];
  const isGone = firsts.some((ts) => ts != null && BigInt(ts) < first);
  // a beginning found before still counts, even if no earlier row is held
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
  // the grid ends at the last row seen: a longer one would put all rows into one slice
  const rowsTo = facts === null && !comesWhole ? smallest(span.to, last + 1n) : span.to;
  const lengthNs = rowsTo - span.from;
  // at least two slices after a full scan, which asked for everything at once: the second pass has to ask differently
  const most = facts === null && !comesWhole ? (lengthNs + 1n) / 2n : lengthNs;
  const byRows = (lengthNs * BigInt(sliceRows)) / BigInt(Math.max(1, rows)) + 1n;
  const stepNs = rows <= sliceRows || comesWhole ? most : smallest(most, byRows);
  const gaps = gapsBetween(kept, span.from, span.to);
  return { grain, gaps, span, rowsTo, spanRows: rows, stepNs: stepNs < 1n ? 1n : stepNs };
}

/** The grain of a table's buckets: as decided before, or from its extent now. */
function grainOf({ held, run, comesWhole }: PlanInput, { rows, first, last }: Extent): Grain {
  if (held.grain !== null) return held.grain;
  if (comesWhole) return "all";
  if (first === undefined || last === undefined) return run.final ? "all" : "year";
  return chooseGrain({ rows, first, last, final: run.final });
}

/** A gateway may say that it has no rows of a table only if it never sent one. */
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
  // a window that was split is left out here: its parts are compared one by one
  const isSplit = gatewayFrom !== undefined && windows.some(({ from }) => from < gatewayFrom);
  const committed = sumRows(isSplit ? windows.filter(({ from }) => from >= gatewayFrom) : windows);
  if (rows < committed) throw shrunk(rows, committed, "");
}

/**
 * Proven segments that the gateway no longer has and that are not held whole: a failed attempt dropped them, or their files
 * are lost.
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
    // rows after the gateway's first can be fetched again
    if (BigInt(segment.to) > gatewayFrom)
      return BigInt(segment.from) < gatewayFrom && !parts.some(({ to }) => BigInt(to) >= gatewayFrom);
    return parts.reduce((sum, { rows }) => sum + rows, 0) < segment.rows;
  };
  return former?.proven?.segments.filter((segment) => segment.rows > 0 && isMissing(segment)) ?? [];
}

/** Held segments, and those of the latest attempt that are lost or doubted: rows came with them all the same. */
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
    "the run has not ended, and its numbered pages, which have no end time, would shift as rows arrive",
    {
      hint: "Archive the run once it has ended; --finished archives only such runs. If the gateway accepts both time bounds, name them in the profile's parameters, as from and to.",
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
    `the gateway now has ${now} rows${where}, but the archive has ${held} and never drops rows by itself`,
    { hint: "If the rows were removed from the gateway on purpose, run again with --accept-shrink." },
  );
}

function filesOf(table: TableView | undefined): ReadonlySet<string> {
  return new Set(table?.segments.map(({ file }) => file));
}

function filesAside(table: TableView | undefined): ReadonlySet<string> {
  return new Set(table?.quarantine.map(({ file }) => file));
}
