import { agreeing, countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import { keySql, type MoveColumns } from "./account-rows.ts";
import type { BooksSource } from "./books-source.ts";
import type { EquityPoints } from "./equity-points.ts";
import { type MetricWindow, windowBegin } from "./metric-windows.ts";
import { type Break, type Finding, mostBreaks } from "./reconcile-report.ts";
import { mayBeOf, strayText } from "./stray-moves.ts";
import {
  type FigureConvention,
  figureUnder,
  type MeasuredFigure,
  type MeasuredWindow,
  type SeriesConvention,
  WindowFigures,
} from "./window-figures.ts";

interface MetricRow extends MetricWindow {
  readonly ts: bigint;
  readonly seq: bigint;
  readonly name: string;
  readonly value: number;
  readonly window: string;
  readonly convention: string;
}

/**
 * Check 7: every row of `metrics` against the same figure of the equity points of its window, as `runvault metrics`
 * computes it. The gateway's formula is found by search, within what a row's convention says about ddof and
 * annualising. Rows with the same name, kind of window and convention are assumed to use one formula: the one that most
 * of them agree with. The others are breaks, even if a different formula happens to give their value.
 */
export async function checkMetrics(
  source: BooksSource,
  points: EquityPoints | null,
  moves: MoveColumns | null,
): Promise<Finding> {
  const head = {
    number: 7,
    name: "reported figures",
    formula: "value = the figure of the equity points of its window",
  };
  const missing = (["metrics", "equity", "events"] as const).flatMap((table) => source.lacking(table) ?? []);
  if (missing.length > 0 || points === null || points.count === 0) {
    const unchecked = missing.length > 0 ? missing : ["there are no equity points"];
    return { ...head, rows: 0, breaks: 0, largest: null, notes: [], first: [], unchecked };
  }
  const { rows: all, unchecked: odd } = await readMetrics(source, points);
  const unchecked = [...odd];
  const strays = (moves?.strays ?? []).filter((stray) => points.keys.some((key) => mayBeOf(stray, key)));
  unchecked.push(...strays.map(strayText));
  const isClear = points.keys.map((key) => !strays.some((stray) => mayBeOf(stray, key)));
  const rows = all.filter(({ key }) => isClear[key] !== false);
  await using measuring = new WindowFigures(source, points.keys);
  const figures = new FoundFigures(measuring);
  const [usual] = seriesConventions;
  await figures.measure(rows, [usual!]);
  const isKnown = (row: MetricRow) => {
    const figure = figures.of(usual!, [row]).get(row)?.get(row.name);
    return figure !== undefined && figure.reason !== "no benchmark";
  };
  const known = rows.filter(isKnown);
  const unknown = Map.groupBy(
    rows.filter((row) => !isKnown(row)),
    ({ name, key }) => (key < 0 ? "an account or currency without equity points" : JSON.stringify(name)),
  );
  for (const [what, own] of unknown)
    unchecked.push(
      `${countText(own.length, "row")} of ${what} ${agreeing(own.length, "is", "are")} not recomputed, the first with seq ${own[0]!.seq}`,
    );
  const groups = [
    ...Map.groupBy(known, (row) => JSON.stringify([row.convention, row.name, row.window])).values(),
  ].map((own) => new Group(own));
  await search(groups, figures);
  const first: Break[] = [];
  let breaks = 0;
  let largest: number | null = null;
  for (const group of groups) {
    if (group.best === null) {
      const { name, convention } = group.rows[0]!;
      unchecked.push(
        `the convention of ${countText(group.rows.length, "row")} of ${name} is not one that the search covers: ${JSON.stringify(convention)}`,
      );
      continue;
    }
    for (const { row, expected } of group.best.wrong) {
      breaks++;
      const off = expected.value === null ? Number.NaN : row.value - expected.value;
      if (Number.isFinite(off) && (largest === null || Math.abs(off) > Math.abs(largest))) largest = off;
      first.push(breakOf(row, expected, off, group.others.get(row), group.best.convention));
    }
  }
  first.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return {
    ...head,
    rows: known.length,
    breaks,
    largest: largest === null ? null : String(largest),
    notes: conventionNotes(groups),
    first: first.slice(0, mostBreaks),
    unchecked,
  };
}

interface Wrong {
  readonly row: MetricRow;
  readonly expected: MeasuredFigure;
}

/** Rows whose own convention says that they were computed in the same way. */
class Group {
  readonly rows: readonly MetricRow[];
  best: { readonly convention: FigureConvention; readonly wrong: readonly Wrong[] } | null = null;
  /** Of rows that are wrong: another convention that gives their value. */
  readonly others = new Map<MetricRow, FigureConvention>();

  constructor(rows: readonly MetricRow[]) {
    this.rows = rows;
  }

  /** Whether no other convention can have more rows agree, and what else gives the wrong ones' values is known. */
  get isSettled(): boolean {
    if (this.best === null) return false;
    const { wrong } = this.best;
    return wrong.length === 0 || (this.#hasMajority && this.open.every((row) => this.others.has(row)));
  }

  get #hasMajority(): boolean {
    return this.best !== null && this.best.wrong.length * 2 < this.rows.length;
  }

  /** Rows that still need to be measured. */
  get open(): readonly MetricRow[] {
    if (!this.#hasMajority) return this.rows;
    return this.best!.wrong.map(({ row }) => row).slice(0, mostBreaks);
  }

  /** Compares rows with their figures under a convention. */
  take(convention: FigureConvention, measured: ReadonlyMap<MetricRow, MeasuredWindow>): void {
    const isWhole = this.rows.every((row) => measured.has(row));
    const wrong: Wrong[] = [];
    let numbers = 0;
    for (const row of this.rows) {
      const window = measured.get(row);
      const expected = window === undefined ? undefined : figureUnder(window, row.name, convention);
      if (expected === undefined) continue;
      if (!agrees(expected, row.value)) wrong.push({ row, expected });
      else if (expected.value !== null) {
        numbers++;
        if (!this.others.has(row)) this.others.set(row, convention);
      }
    }
    if (!isWhole || !isStated(this.rows[0]!.convention, convention)) return;
    // a convention without figures, such as days in a run of a few hours, gains nothing from that
    if (this.best !== null && numbers === 0) return;
    if (this.best === null || wrong.length < this.best.wrong.length) this.best = { convention, wrong };
  }
}

/** The windows of rows measured under conventions, each window once. */
class FoundFigures {
  readonly #figures: WindowFigures;
  readonly #found = new Map<SeriesConvention, Map<MetricRow, MeasuredWindow>>();

  constructor(figures: WindowFigures) {
    this.#figures = figures;
  }

  async measure(rows: readonly MetricRow[], conventions: readonly SeriesConvention[]): Promise<void> {
    const own = [
      ...Map.groupBy(
        rows.filter(({ key }) => key >= 0),
        ({ key, from, to }) => `${key} ${from} ${to}`,
      ).values(),
    ];
    const windows = own.map(([row]) => row!);
    for (const [convention, measured] of await this.#figures.of(windows, conventions)) {
      const found = own.flatMap((same, window) => same.map((row) => [row, measured[window]!] as const));
      this.#found.set(convention, new Map(found));
    }
  }

  /** The measured figures of rows. */
  of(convention: SeriesConvention, rows: readonly MetricRow[]): ReadonlyMap<MetricRow, MeasuredWindow> {
    const found = this.#found.get(convention);
    return new Map(
      rows.flatMap((row) => {
        const window = found?.get(row);
        return window === undefined ? [] : [[row, window] as const];
      }),
    );
  }
}

/** Tries conventions, the usual ones first, until no row asks for another. The usual series has been measured. */
async function search(groups: readonly Group[], figures: FoundFigures): Promise<void> {
  for (const [place, series] of seriesConventions.entries()) {
    const open = groups.filter((group) => !group.isSettled);
    if (open.length === 0) return;
    if (place === 1)
      await figures.measure(
        open.flatMap((group) => group.open),
        seriesConventions.slice(1),
      );
    for (const periods of periodsOf(groups)) {
      const wanting = open.filter((group) => {
        if (group.isSettled) return false;
        const stated = statedPeriods(group.rows[0]!.convention);
        return (
          stated === periods ||
          (place === 0 || group.best === null ? stated === undefined : periods === usualPeriods[0])
        );
      });
      for (const group of wanting) {
        const measured = figures.of(series, group.open);
        for (const ddof of [1, 0] as const) group.take({ ...series, periods, ddof }, measured);
      }
    }
  }
}

/** Periods that rows state, and the usual ones. */
function periodsOf(groups: readonly Group[]): readonly number[] {
  const stated = groups.flatMap(({ rows }) => statedPeriods(rows[0]!.convention) ?? []);
  return [...new Set([...stated, ...usualPeriods])];
}

async function readMetrics(
  source: BooksSource,
  { keys }: EquityPoints,
): Promise<{ readonly rows: MetricRow[]; readonly unchecked: readonly string[] }> {
  await source.showOnly("metrics", source.run);
  const sql = `SELECT CAST(epoch_ns(ts_event) AS BIGINT), seq, ${keySql(keys)}, name, value, "window", convention FROM metrics`;
  const result = await source.connection.runAndReadAll(sql);
  const strange = new Map<string, number>();
  const rows = result.getRows().flatMap(([at, seq, key, name, value, named, convention]): MetricRow[] => {
    const [ts, window] = [BigInt(String(at)), String(named)];
    const from = windowBegin(window, ts);
    if (from === undefined) {
      strange.set(window, (strange.get(window) ?? 0) + 1);
      return [];
    }
    return [
      {
        ...{ ts, window, from, to: ts, key: Number(key) },
        seq: BigInt(String(seq)),
        name: String(name),
        value: value === null ? Number.NaN : Number(value),
        convention: String(convention),
      },
    ];
  });
  const unchecked = [...strange].map(
    ([window, count]) =>
      `${countText(count, "row")} ${agreeing(count, "has", "have")} an unknown window: ${JSON.stringify(window)}`,
  );
  return { rows, unchecked };
}

function breakOf(
  row: MetricRow,
  expected: MeasuredFigure,
  off: number,
  other: FigureConvention | undefined,
  own: FigureConvention,
): Break {
  const is = expected.value === null ? `cannot have a value: ${expected.reason}` : `is not ${expected.value}`;
  const but = other === undefined ? "" : `; it would be right with ${differenceText(other, own)}`;
  return {
    at: formatTime(row.ts),
    amount: Number.isFinite(off) ? String(off === 0 ? 0 : off) : null,
    unit: "",
    what: `${row.name} of the ${row.window} ${is}${but}`,
    rows: [{ table: "metrics", seq: String(row.seq) }],
    moreRows: 0,
  };
}

/** The conventions that were found, with how many rows agree. */
function conventionNotes(groups: readonly Group[]): string[] {
  const found = groups.flatMap(({ best, rows }) => (best === null ? [] : [{ ...best, rows }]));
  return [...Map.groupBy(found, ({ convention }) => conventionText(convention))].map(([text, own]) => {
    const rows = own.reduce((sum, { rows: all }) => sum + all.length, 0);
    const wrong = own.reduce((sum, one) => sum + one.wrong.length, 0);
    return `${rows - wrong} of ${countText(rows, "row")} ${agreeing(rows, "agrees", "agree")} with: ${text}`;
  });
}

/** The usual one first, which wins if several agree with the same rows. */
const seriesConventions: readonly SeriesConvention[] = (["bars", "utc"] as const).flatMap((session) =>
  (["(]", "[)"] as const).flatMap((edge) =>
    (["before", "first"] as const).flatMap((base) =>
      [true, false].map((flows) => ({ edge, base, flows, session })),
    ),
  ),
);

/** Minutes of a year, trading days, days, hours, trading minutes. */
const usualPeriods: readonly number[] = [525_600, 252, 365, 8_760, 252 * 390];

function statedPeriods(text: string): number | undefined {
  const stated = /(?:√|sqrt\(?) ?(\d+)/.exec(text)?.[1];
  return stated === undefined ? undefined : Number(stated);
}

/** Whether a convention does not contradict a text. */
function isStated(text: string, { ddof, periods }: FigureConvention): boolean {
  const stated = /\bddof ?=? ?(\d)/.exec(text)?.[1];
  return (stated === undefined || Number(stated) === ddof) && (statedPeriods(text) ?? periods) === periods;
}

function conventionText({ edge, base, flows, ddof, periods, session }: FigureConvention): string {
  const parts = [
    `window ${edge}`,
    `base ${base === "before" ? "the point before it" : "its first point"}`,
    flows ? "flows taken off" : "flows left in",
    `returns of ${session === "bars" ? "points" : "days"}`,
    `ddof ${ddof}`,
    `P ${periods}`,
  ];
  return parts.join(", ");
}

function differenceText(other: FigureConvention, own: FigureConvention): string {
  const parts = [
    ...(other.edge === own.edge ? [] : [`window ${other.edge}`]),
    ...(other.base === own.base ? [] : [`base ${other.base}`]),
    ...(other.flows === own.flows ? [] : [other.flows ? "flows taken off" : "flows left in"]),
    ...(other.session === own.session ? [] : [`returns of ${other.session === "bars" ? "points" : "days"}`]),
    ...(other.ddof === own.ddof ? [] : [`ddof ${other.ddof}`]),
    ...(other.periods === own.periods ? [] : [`P ${other.periods}`]),
  ];
  return parts.join(", ");
}

/** Reasons for which a formula divides by nothing or by zero: what others then report as 0, NaN or infinity. */
const wanting = /^(?:no return|fewer than \d+ returns|no losing period|no drawdown|the 5 % quantile is zero)/;

function agrees({ value, reason }: MeasuredFigure, reported: number): boolean {
  // an infinity would be within any share of itself
  if (value !== null) return Number.isFinite(reported) && isSame(value, reported);
  const isNothing = reported === 0 || !Number.isFinite(reported);
  return Number.isNaN(reported) || (isNothing && wanting.test(reason ?? ""));
}

/** Whether adding the same doubles in different orders may explain the difference. */
function isSame(a: number, b: number): boolean {
  return a === b || Math.abs(a - b) <= Math.max(1e-9 * Math.max(Math.abs(a), Math.abs(b)), 1e-12);
}
