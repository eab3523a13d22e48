import { chooseGrain, type Grain } from "../archive/bucket.ts";
import type { HeldTable } from "../archive/held-tables.ts";
import type { SurveyRecord } from "../archive/journal.ts";
import type { Segment, TableManifest } from "../archive/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import type { StorageFacts } from "../model/source.ts";
import type { TableName } from "../model/table.ts";
import { int64Max, type Nanoseconds } from "../model/time.ts";
import { certifiedRows, isDisproven, isOutdated } from "./committed-table.ts";
import {
  contiguous,
  gapsBetween,
  type HeldWindow,
  heldWindows,
  sumRows,
  type Window,
  windowKey,
} from "./held-window.ts";
import type { RunKnowledge } from "./run-knowledge.ts";
import { type SlicePlan, smallest } from "./slices.ts";

/** What is known of a table before anything is asked. */
export interface PlanInput {
  readonly table: TableName;
  readonly run: RunKnowledge;
  /** Exclusive upper bound of ts_event; undefined for a finished run. */
  readonly until: Nanoseconds | undefined;
  /** What the gateway says it holds within that bound; null where it has no storage facts. */
  readonly facts: StorageFacts | null;
  /** True when the gateway counts rows in any window. */
  readonly isCounted: boolean;
  readonly held: Readonly<HeldTable>;
  /** The table as it is committed. */
  readonly former: TableManifest | undefined;
  readonly sliceRows: number;
  readonly acceptShrink: boolean;
}

/** What the gateway answered so far to the questions of one plan. */
export interface PlanAnswers {
  /** Rows that it counts in windows, by `windowKey`. */
  readonly counts: ReadonlyMap<string, number>;
  /** What a pass over all of the table found; `absent` where the gateway said that it keeps no such table. */
  readonly survey?: SurveyRecord | "absent";
}

/** Either what must be asked before more can be said, or what to do. */
export type PlanStep = CountStep | SurveyStep | AbsentPlan | FetchPlan;

/** The rows in these windows must be counted. */
export interface CountStep {
  readonly kind: "count";
  readonly windows: readonly Window[];
}

/** Only a pass over all of the table can tell what it holds. */
export interface SurveyStep {
  readonly kind: "survey";
}

/** The gateway keeps no such table. */
export interface AbsentPlan {
  readonly kind: "absent";
  readonly drop: readonly Segment[];
}

/** What of the held segments stops counting, and what is to be fetched then. */
export interface FetchPlan extends SlicePlan {
  readonly kind: "fetch";
  readonly drop: readonly Segment[];
  /** Rows to fetch. */
  readonly rows: number;
}

/** What a table holds, by facts or by a survey. */
interface Extent {
  readonly rows: number;
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
}

/**
 * Plans one table: a pure function of what is known and of what was answered so far, called again with each answer until
 * it asks no more. The job and its dry run both go by it.
 *
 * Throws `shrunk` or `history_unavailable` where the gateway holds less than the archive, and nobody accepted that.
 */
export function planTable(input: PlanInput, answers: PlanAnswers): PlanStep {
  const { held, former, run } = input;
  const found = extentOf(input, answers);
  if (found === undefined) return { kind: "survey" };
  if (found === "absent") {
    refuseToVanish(input);
    return { kind: "absent", drop: held.segments };
  }
  refuseToShrink(input, found.rows);
  const formerFiles = filesOf(former);
  const isFormer = ({ file }: Segment) => formerFiles.has(file);
  const drop = new Set<Segment>();

  // no count tells which of its windows is wrong
  const disproven = former !== undefined && isDisproven(former) && !input.isCounted;
  // the gateway may have mended rows that were set aside
  const aside = new Set(former?.quarantine.map(windowKey));
  const outdated = former !== undefined && isOutdated(former, run);
  for (const segment of held.segments.filter(isFormer)) {
    if (disproven || outdated || aside.has(windowKey(segment))) drop.add(segment);
  }

  if (input.isCounted) {
    const { ask, changed } = compareCounts(heldWindows(held), answers.counts);
    if (ask.length > 0) return { kind: "count", windows: ask };
    for (const { window, rows } of changed) {
      // a committed window that lost rows, whatever others gained
      if (rows < window.rows && window.segments.every(isFormer) && mustNotShrink(input)) {
        throw shrunk(rows, window.rows, ` in [${window.from}, ${window.to})`);
      }
      for (const segment of window.segments) drop.add(segment);
    }
  }

  const kept = heldWindows({ ...held, segments: held.segments.filter((segment) => !drop.has(segment)) });
  return {
    kind: "fetch",
    drop: [...drop],
    // counts that came one after another may contradict each other
    rows: Math.max(0, found.rows - sumRows(kept)),
    ...slicePlan(input, found, kept),
  };
}

/** What the table holds; undefined where only a survey can tell. */
function extentOf(
  { table, facts, held, until }: PlanInput,
  answers: PlanAnswers,
): Extent | "absent" | undefined {
  if (facts !== null) {
    const own = facts.get(table);
    return own === undefined ? "absent" : { rows: Number(own.rows), first: own.first, last: own.last };
  }
  const before = held.survey?.until === (until?.toString() ?? null) ? held.survey : undefined;
  const survey = answers.survey ?? before;
  if (survey === undefined || survey === "absent") return survey;
  const time = (text: string | null) => (text === null ? undefined : BigInt(text));
  return { rows: survey.rows, first: time(survey.first), last: time(survey.last) };
}

/**
 * The held windows whose rows changed at the gateway since (late rows, corrections), found by halving the range while
 * the counts differ; or the windows whose counts that takes. Equal counts are taken as unchanged.
 */
function compareCounts(windows: readonly HeldWindow[], counts: PlanAnswers["counts"]) {
  const ask: Window[] = [];
  const changed: { readonly window: HeldWindow; readonly rows: number }[] = [];
  const compare = (stretch: readonly HeldWindow[]) => {
    const whole = { from: stretch[0]!.from, to: stretch.at(-1)!.to };
    const rows = counts.get(windowKey(whole));
    if (rows === undefined) ask.push(whole);
    else if (rows === sumRows(stretch)) return;
    else if (stretch.length === 1) changed.push({ window: stretch[0]!, rows });
    else {
      const middle = stretch.length >> 1;
      compare(stretch.slice(0, middle));
      compare(stretch.slice(middle));
    }
  };
  for (const stretch of contiguous(windows)) compare(stretch);
  return { ask, changed };
}

function slicePlan(input: PlanInput, extent: Extent, kept: readonly HeldWindow[]): SlicePlan {
  const { until, facts, sliceRows } = input;
  const { rows, first, last } = extent;
  const grain = grainOf(input, extent);
  if (first === undefined || last === undefined) {
    const nothing = { from: 0n, to: 0n };
    return { grain, gaps: [], span: nothing, spanRows: rows, stepNs: 1n };
  }
  const span = { from: first, to: until ?? smallest(last + 1n, int64Max) };
  const lengthNs = span.to - span.from;
  // after a survey, which asked for all at once, two slices at least: a second pass has to ask in another way
  const most = facts === null ? (lengthNs + 1n) / 2n : lengthNs;
  const byRows = (lengthNs * BigInt(sliceRows)) / BigInt(Math.max(1, rows)) + 1n;
  const stepNs = rows <= sliceRows ? most : smallest(most, byRows);
  const gaps = gapsBetween(kept, span.from, span.to);
  return { grain, gaps, span, spanRows: rows, stepNs: stepNs < 1n ? 1n : stepNs };
}

/** The grain of a table's buckets: decided before, or by its extent now. */
function grainOf({ held, run }: PlanInput, { rows, first, last }: Extent): Grain {
  if (held.grain !== null) return held.grain;
  if (first === undefined || last === undefined) return run.final ? "all" : "year";
  return chooseGrain({ rows, first, last, final: run.final });
}

/** The gateway may say that it keeps no such table only where it has never given a row of it. */
function refuseToVanish({ former, held, acceptShrink }: PlanInput): void {
  if (acceptShrink) return;
  const hint = "If the rows are rightly gone at the gateway, run again with --accept-shrink.";
  if (filesOf(former).size > 0) {
    throw new RunvaultError(
      "shrunk",
      "the gateway says that it keeps no such table, the archive holds rows of it",
      { hint },
    );
  }
  if (held.segments.length > 0) {
    throw new RunvaultError(
      "history_unavailable",
      "the gateway says that it keeps no such table, and gave rows of it before",
      { hint },
    );
  }
}

function refuseToShrink(input: PlanInput, rows: number): void {
  if (input.former === undefined || !mustNotShrink(input)) return;
  const committed = certifiedRows(input.former);
  if (rows < committed) throw shrunk(rows, committed, "");
}

/** Rows that the gateway's own count or second pass contradicted protect nothing. */
function mustNotShrink({ acceptShrink, former }: PlanInput): boolean {
  if (acceptShrink || former === undefined) return false;
  const agreed = former.certificate?.gatewayRows === certifiedRows(former).toString();
  return agreed || !isDisproven(former);
}

function shrunk(now: number, held: number, where: string): RunvaultError {
  return new RunvaultError(
    "shrunk",
    `the gateway now holds ${now} rows${where}, the archive ${held}: the archive never shrinks by itself`,
    { hint: "If the rows are rightly gone at the gateway, run again with --accept-shrink." },
  );
}

function filesOf(table: TableManifest | undefined): ReadonlySet<string> {
  return new Set(table?.segments.map(({ file }) => file));
}
