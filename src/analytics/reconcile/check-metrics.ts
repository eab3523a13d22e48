import { formatTime } from "../../model/time.ts";
import { keySql, type MoveColumns, type PointColumns } from "./account-rows.ts";
import type { BooksSource } from "./check-books.ts";
import { type Break, type Finding, mostBreaks } from "./reconcile-report.ts";
import { type FigureConvention, isSame, knownFigures, type Moments, momentsOf } from "./window-figures.ts";

const minutesOfYear = 525_600;
const dayNs = 86_400_000_000_000n;

interface MetricRow {
  readonly ts: bigint;
  readonly seq: bigint;
  readonly key: number;
  readonly name: string;
  readonly value: number;
  readonly window: string;
  readonly convention: string;
}

/**
 * Check 7: every row of `metrics` against the same figure of the equity points. How the gateway computes is found by
 * search, within what its convention says of ddof and annualising: the convention that most rows of one text agree with
 * is taken for it, and the others are breaks.
 */
export async function checkMetrics(
  source: BooksSource,
  points: PointColumns | null,
  moves: MoveColumns | null,
): Promise<Finding> {
  const head = {
    number: 7,
    name: "reported figures",
    formula: "value = the figure of the equity points of its window",
  };
  const missing = [
    source.lacking("metrics") ?? [],
    source.lacking("equity") ?? [],
    source.lacking("events") ?? [],
  ].flat();
  if (missing.length > 0 || points === null || moves === null) {
    const unchecked = missing.length > 0 ? missing : ["there are no equity points"];
    return { ...head, rows: 0, breaks: 0, largest: null, notes: [], first: [], unchecked };
  }
  const rows = await readMetrics(source, points);
  const series = points.keys.map((_, key) => seriesOf(points, moves, key));
  const unchecked: string[] = [];
  const strange = new Map<string, number>();
  const known = rows.filter(({ name, key, window }) => {
    const isKnown = knownFigures.has(name) && key >= 0 && ["run", "day", "month"].includes(window);
    if (!isKnown) strange.set(`${name} of a ${window}`, (strange.get(`${name} of a ${window}`) ?? 0) + 1);
    return isKnown;
  });
  for (const [what, count] of strange) unchecked.push(`${count} rows of ${what} are not recomputed`);
  const notes: string[] = [];
  const first: Break[] = [];
  let breaks = 0;
  let largest: number | null = null;
  const figures = new WindowFigures(series);
  for (const [text, own] of Map.groupBy(known, ({ convention }) => convention)) {
    const all = conventions();
    const stated = all.filter((one) => isStated(text, one));
    if (stated.length === 0) {
      unchecked.push(
        `the convention of ${own.length} rows is none that was searched: ${JSON.stringify(text)}`,
      );
      continue;
    }
    let best: { readonly convention: FigureConvention; readonly wrong: readonly MetricRow[] } | null = null;
    for (const convention of stated) {
      const wrong = own.filter((row) => !isSame(figures.of(row, convention), row.value));
      if (best === null || wrong.length < best.wrong.length) best = { convention, wrong };
      if (wrong.length === 0) break;
    }
    const { convention, wrong } = best!;
    notes.push(
      `${own.length - wrong.length} of ${own.length} rows agree with: ${conventionText(convention)}`,
    );
    breaks += wrong.length;
    for (const row of wrong) {
      const expected = figures.of(row, convention);
      const off = row.value - expected;
      if (Number.isFinite(off) && (largest === null || Math.abs(off) > Math.abs(largest))) largest = off;
      if (first.length === mostBreaks) continue;
      const other = all.find((one) => isSame(figures.of(row, one), row.value));
      const but = other === undefined ? "" : `; it is that with ${differenceText(other, convention)}`;
      first.push({
        at: formatTime(row.ts),
        amount: Number.isFinite(off) ? String(off === 0 ? 0 : off) : null,
        unit: "",
        what: `${row.name} of the ${row.window} is not ${Number.isFinite(expected) ? expected : "a number by the equity points"}${but}`,
        rows: [{ table: "metrics", seq: String(row.seq) }],
        moreRows: 0,
      });
    }
  }
  return {
    ...head,
    rows: known.length,
    breaks,
    largest: largest === null ? null : String(largest),
    notes,
    first,
    unchecked,
  };
}

async function readMetrics(source: BooksSource, { keys }: PointColumns): Promise<MetricRow[]> {
  await source.showOnly("metrics", source.run);
  const sql = `SELECT CAST(epoch_ns(ts_event) AS BIGINT), CAST(seq AS BIGINT), ${keySql(keys)}, name, value, "window", convention FROM metrics`;
  const result = await source.connection.runAndReadAll(sql);
  return result.getRows().map(([ts, seq, key, name, value, window, convention]) => ({
    ts: BigInt(String(ts)),
    seq: BigInt(String(seq)),
    key: Number(key),
    name: String(name),
    value: value === null ? Number.NaN : Number(value),
    window: String(window),
    convention: String(convention),
  }));
}

/** One account's equity as doubles, with what flowed since the point before. */
interface Series {
  readonly ts: BigInt64Array;
  readonly equity: Float64Array;
  readonly flows: Float64Array;
  /** Deposits before the first point. */
  readonly deposited: number;
}

function seriesOf(points: PointColumns, moves: MoveColumns, key: number): Series {
  let count = 0;
  for (let point = 0; point < points.count; point++) if (points.key[point] === key) count++;
  const series = {
    ts: new BigInt64Array(count),
    equity: new Float64Array(count),
    flows: new Float64Array(count),
    deposited: 0,
  };
  const [ofPoint, ofMove] = [10 ** points.scale, 10 ** moves.scale];
  let [at, move] = [0, 0];
  for (let point = 0; point < points.count; point++) {
    if (points.key[point] !== key) continue;
    let flow = 0n;
    for (; move < moves.count && moves.ts[move]! <= points.ts[point]!; move++) {
      if (moves.key[move] === key && moves.isTransfer[move] === 1) flow += moves.amount[move]!;
    }
    series.ts[at] = points.ts[point]!;
    series.equity[at] = Number(points.equity[point]!) / ofPoint;
    if (at === 0) series.deposited = Number(flow) / ofMove;
    else series.flows[at] = Number(flow) / ofMove;
    at++;
  }
  return series;
}

/** Figures of windows, each window gone over once for each way to cut it. */
class WindowFigures {
  readonly #series: readonly Series[];
  readonly #known = new Map<string, Moments>();

  constructor(series: readonly Series[]) {
    this.#series = series;
  }

  of(row: MetricRow, convention: FigureConvention): number {
    const { edge, base, flows } = convention;
    const name = `${row.key} ${row.window} ${row.window === "run" ? "" : row.ts} ${edge} ${base} ${flows}`;
    const moments = this.#known.get(name) ?? this.#momentsOf(row, convention);
    this.#known.set(name, moments);
    return knownFigures.get(row.name)!(moments, convention);
  }

  #momentsOf({ key, ts: end, window }: MetricRow, { edge, base, flows }: FigureConvention): Moments {
    const { ts, equity, flows: flowed, deposited } = this.#series[key]!;
    const isBefore = (point: bigint, limit: bigint) => (edge === "(]" ? point <= limit : point < limit);
    const cut = (limit: bigint) => {
      let [low, high] = [0, ts.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (isBefore(ts[middle]!, limit)) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    let from = window === "run" ? 0 : cut(beginOf(end, window));
    const to = window === "run" ? ts.length : cut(end);
    let start = from === 0 ? deposited : equity[from - 1]!;
    if (base === "first" && from < to) start = equity[from++]!;
    const own = equity.subarray(from, to);
    return momentsOf(start, own, flows ? flowed.subarray(from, to) : null);
  }
}

/** Where the window of a day or month that ends at an instant begins. */
function beginOf(end: bigint, window: string): bigint {
  if (window === "day") return end - dayNs;
  const date = new Date(Number((end - 1n) / 1_000_000n));
  return BigInt(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)) * 1_000_000n;
}

/** The usual one first: where several agree with the same rows, it is taken. */
function conventions(): FigureConvention[] {
  const found: FigureConvention[] = [];
  for (const edge of ["(]", "[)"] as const)
    for (const base of ["before", "first"] as const)
      for (const flows of [true, false])
        for (const ddof of [1, 0] as const)
          for (const periods of [minutesOfYear, 252, 365, 8760, 252 * 390])
            found.push({ edge, base, flows, ddof, periods });
  return found;
}

/** Whether a convention is none that a text speaks against. */
function isStated(text: string, { ddof, periods }: FigureConvention): boolean {
  const statedDdof = /\bddof ?=? ?(\d)/.exec(text)?.[1];
  const statedPeriods = /(?:√|sqrt\(?) ?(\d+)/.exec(text)?.[1];
  return (
    (statedDdof === undefined || Number(statedDdof) === ddof) &&
    (statedPeriods === undefined || Number(statedPeriods) === periods)
  );
}

function conventionText({ edge, base, flows, ddof, periods }: FigureConvention): string {
  return `window ${edge}, base ${base === "before" ? "the point before it" : "its first point"}, ${flows ? "flows taken off" : "flows left in"}, ddof ${ddof}, P ${periods}`;
}

function differenceText(other: FigureConvention, own: FigureConvention): string {
  const parts = [
    ...(other.edge === own.edge ? [] : [`window ${other.edge}`]),
    ...(other.base === own.base ? [] : [`base ${other.base}`]),
    ...(other.flows === own.flows ? [] : [other.flows ? "flows taken off" : "flows left in"]),
    ...(other.ddof === own.ddof ? [] : [`ddof ${other.ddof}`]),
    ...(other.periods === own.periods ? [] : [`P ${other.periods}`]),
  ];
  return parts.join(", ");
}
