import type { DuckDBConnection } from "@duckdb/node-api";
import { decimalSql } from "../../duckdb/exact-vector.ts";
import { squareRoot } from "../../model/fixed-point.ts";
import { exactType } from "../../model/profile/exact-types.ts";
import { timestampMin } from "../../model/time.ts";
import { createMacros } from "../sql/macros.ts";
import type { AccountKey } from "./account-key.ts";
import { keySql, moveKeySql } from "./account-rows.ts";
import type { BooksSource } from "./books-source.ts";
import { layersOf, type MetricWindow } from "./metric-windows.ts";

/** How the series of a window may have been made. */
export interface SeriesConvention {
  /** `(]`: a point at the window's end belongs to it; `[)`: to the next. */
  readonly edge: "(]" | "[)";
  /** The base of the first return: the point before the window, or the first one in it. */
  readonly base: "before" | "first";
  /** Whether deposits and withdrawals are removed first. */
  readonly flows: boolean;
  /** The period of a return: from one point to the next, or a day. */
  readonly session: "bars" | "utc";
}

/** How a figure may have been computed from the series. */
export interface FigureConvention extends SeriesConvention {
  readonly ddof: 0 | 1;
  /** Periods a year. */
  readonly periods: number;
}

/** A figure by our own macros: a number, or the reason for none. */
export interface MeasuredFigure {
  readonly value: number | null;
  readonly reason: string | null;
  /** Returns. */
  readonly n: number;
}

/** A window's figures by name. */
export type MeasuredWindow = ReadonlyMap<string, MeasuredFigure>;

/** Figures that grow with the square root of the periods a year. */
const perRootYear: ReadonlySet<string> = new Set(["volatility", "downside_deviation", "sharpe", "sortino"]);
/** Figures whose deviations divide by n - ddof, and whether ddof is in the divisor. */
const withDdof: ReadonlyMap<string, "above" | "below"> = new Map([
  ["volatility", "above"],
  ["sharpe", "below"],
]);

/**
 * A figure of a window under a convention, from what was measured with one period a year and ddof 1, for these two come
 * last in every formula: deviations and their ratios grow by √P, and CAGR is (1 + total return)^(P / n) - 1. Undefined
 * for a name that `runvault metrics` does not have.
 */
export function figureUnder(
  window: MeasuredWindow,
  name: string,
  { periods, ddof }: Pick<FigureConvention, "periods" | "ddof">,
): MeasuredFigure | undefined {
  const measured = window.get(name);
  if (measured === undefined) return undefined;
  const { reason, n } = measured;
  const cagr = () => (1 + window.get("total_return")!.value!) ** (periods / n) - 1;
  if (measured.value === null) return measured;
  let { value } = measured;
  if (perRootYear.has(name)) value *= squareRoot(periods);
  if (name === "cagr") value = cagr();
  if (name === "calmar") value = cagr() / -window.get("max_drawdown")!.value!;
  const where = ddof === 0 ? withDdof.get(name) : undefined;
  const factor = squareRoot((n - 1) / n);
  if (where !== undefined) value = where === "above" ? value * factor : value / factor;
  return Number.isFinite(value) ? { value, reason, n } : { value: null, reason: "not a finite number", n };
}

/** About how many points one statement measures; with more, each convention gets its own. */
const mostAtOnce = 4_000_000;

/**
 * Figures of windows of a run's equity points, by the macro `performance`, like those of `runvault metrics`. A window
 * under a convention becomes a separate series: its points after the base of its first return, and the money that
 * moved. Usually one statement measures all of them, because planning it takes most of the time. Meanwhile the views
 * `equity` and `events` show these series; afterwards they show the run again.
 */
export class WindowFigures {
  readonly #source: BooksSource;
  readonly #keys: readonly AccountKey[];
  /** Of the run. */
  #points = 0;
  #isReady = false;

  constructor(source: BooksSource, keys: readonly AccountKey[]) {
    this.#source = source;
    this.#keys = keys;
  }

  /** The figures of each window, in their order, under each convention, with one period a year and ddof 1. */
  async of(
    windows: readonly MetricWindow[],
    conventions: readonly SeriesConvention[],
  ): Promise<ReadonlyMap<SeriesConvention, readonly MeasuredWindow[]>> {
    const measured = new Map(
      conventions.map((one) => [one, windows.map(() => new Map<string, MeasuredFigure>())]),
    );
    if (windows.length === 0) return measured;
    await this.#prepare();
    const layers = layersOf(windows);
    const together = Math.max(1, Math.floor(mostAtOnce / (this.#points * layers.length || 1)));
    try {
      await writeWindows(this.#source.connection, windows, layers);
      for (const own of Map.groupBy(conventions, ({ session }) => session).values()) {
        for (let first = 0; first < own.length; first += together)
          await this.#measure(own.slice(first, first + together), windows.length, measured);
      }
    } finally {
      await showRun(this.#source);
      await this.#source.connection.run("DROP TABLE IF EXISTS measured_windows");
    }
    return measured;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source.connection.run(
      "DROP TABLE IF EXISTS measured_rows; DROP TABLE IF EXISTS measured_moves",
    );
  }

  /** Conventions of one kind of session. */
  async #measure(
    conventions: readonly SeriesConvention[],
    windows: number,
    to: ReadonlyMap<SeriesConvention, readonly Map<string, MeasuredFigure>[]>,
  ): Promise<void> {
    const { connection } = this.#source;
    try {
      const columns = `w INTEGER, key INTEGER, ts TIMESTAMP_NS`;
      const type = this.#amountType();
      await connection.run(`CREATE TEMP TABLE measured_points (${columns}, equity ${type})`);
      await connection.run(`CREATE TEMP TABLE measured_flows (${columns}, amount ${type})`);
      for (const [place, convention] of conventions.entries()) {
        await connection.run(pointsSql(convention, place * windows));
        if (convention.flows) await connection.run(flowsSql(place * windows, windows));
      }
      await showMeasured(connection);
      const result = await connection.runAndReadAll(`
        SELECT CAST(portfolio AS INTEGER), metric, value, reason, CAST(n AS INTEGER)
        FROM performance('', '', base := 'first', session := '${conventions[0]!.session}', periods := 1.0)`);
      for (const [series, metric, value, reason, n] of result.getRows()) {
        const place = Math.floor(Number(series) / windows);
        to.get(conventions[place]!)![Number(series) % windows]!.set(String(metric), {
          value: value === null ? null : Number(value),
          reason: reason === null ? null : String(reason),
          n: Number(n),
        });
      }
    } finally {
      await showRun(this.#source);
      await connection.run("DROP TABLE IF EXISTS measured_points; DROP TABLE IF EXISTS measured_flows");
    }
  }

  /** A type for equity and total deposits. */
  #amountType(): string {
    const { exactTypes } = this.#source;
    const [equity, amount] = [
      exactType(exactTypes("equity"), "equity"),
      exactType(exactTypes("events"), "amount"),
    ];
    return decimalSql({ precision: 38, scale: Math.max(equity.scale, amount.scale) });
  }

  /** The run's own points and moves, read once: one row per instant. */
  async #prepare(): Promise<void> {
    if (this.#isReady) return;
    const { connection } = this.#source;
    await showRun(this.#source);
    await createMacros(connection, ["performance"]);
    await connection.run(`
      CREATE TEMP TABLE measured_rows AS
        SELECT ${keySql(this.#keys)} AS key, ts_event AS ts, max_by(equity, seq) AS equity FROM equity GROUP BY ALL ORDER BY key, ts`);
    await connection.run(`
      CREATE TEMP TABLE measured_moves AS
        SELECT ${moveKeySql(this.#keys)} AS key, ts_event AS ts, sum(amount) AS amount FROM events
        WHERE kind IN ('account.deposit', 'account.withdrawal') AND amount IS NOT NULL GROUP BY ALL ORDER BY key, ts`);
    const counted = await connection.runAndReadAll("SELECT count(*) FROM measured_rows");
    this.#points = Number(counted.getRows()[0]![0]);
    this.#isReady = true;
  }
}

/** Makes the views `equity` and `events` show the windows' series, each as a portfolio. */
async function showMeasured(connection: DuckDBConnection): Promise<void> {
  await connection.run(`
    CREATE OR REPLACE VIEW equity AS
      SELECT '' AS instance_id, '' AS run_id, '' AS account, CAST(w AS VARCHAR) AS portfolio, '' AS currency,
             ts AS ts_event, 0 AS seq, equity FROM measured_points`);
  await connection.run(`
    CREATE OR REPLACE VIEW events AS
      SELECT '' AS instance_id, '' AS run_id, '' AS account, CAST(w AS VARCHAR) AS portfolio, '' AS currency,
             ts AS ts_event, 0 AS seq, 'account.deposit' AS kind, amount FROM measured_flows`);
}

async function showRun({ showOnly, run }: BooksSource): Promise<void> {
  await showOnly("equity", run);
  await showOnly("events", run);
}

/** Before any point: the beginning of a window that begins with the run. */
const never = `make_timestamp_ns(${timestampMin})`;

async function writeWindows(
  connection: DuckDBConnection,
  windows: readonly MetricWindow[],
  layers: readonly (readonly number[])[],
): Promise<void> {
  const instant = (ns: bigint) => `make_timestamp_ns(${ns})`;
  const rows = layers.flatMap((places, layer) =>
    places.map((place) => {
      const { key, from, to } = windows[place]!;
      return `(${layer}, ${place}, ${key}, ${from === null ? never : instant(from)}, ${instant(to)})`;
    }),
  );
  await connection.run(
    "CREATE TEMP TABLE measured_windows (layer INTEGER, w INTEGER, key INTEGER, begins TIMESTAMP_NS, ends TIMESTAMP_NS)",
  );
  for (let first = 0; first < rows.length; first += 1000)
    await connection.run(`INSERT INTO measured_windows VALUES ${rows.slice(first, first + 1000).join(", ")}`);
}

/**
 * The points of each window, numbered from `offset`; with the base `before`, after the previous point, or the deposits
 * until then.
 */
function pointsSql({ edge, base, session }: SeriesConvention, offset: number): string {
  const isBefore = edge === "(]" ? "<=" : "<";
  const isBehind = edge === "(]" ? ">" : ">=";
  // under `utc` the base must be on another day
  const baseTs =
    session === "bars"
      ? "make_timestamp_ns(epoch_ns(f.ts) - 1)"
      : "make_timestamp_ns(floor_divide(epoch_ns(f.ts) - 1, 86400000000000) * 86400000000000)";
  const inside = `
    SELECT w.w + ${offset} AS w, w.key, r.ts, r.equity
    FROM (SELECT r.*, l.layer FROM measured_rows r CROSS JOIN (SELECT DISTINCT layer FROM measured_windows) l) r
    ASOF JOIN measured_windows w ON r.layer = w.layer AND r.key = w.key AND r.ts ${isBefore} w.ends
    WHERE r.ts ${isBehind} w.begins`;
  if (base === "first") return `INSERT INTO measured_points ${inside}`;
  return `
    INSERT INTO measured_points
    WITH inside AS MATERIALIZED (${inside}),
    firsts AS (SELECT i.w, i.key, min(i.ts) AS ts FROM inside i GROUP BY ALL)
    FROM inside
    UNION ALL
    SELECT f.w, f.key, ${baseTs}, coalesce(r.equity,
      (SELECT sum(m.amount) FROM measured_moves m WHERE m.key = f.key AND m.ts <= f.ts))
    FROM firsts f ASOF LEFT JOIN measured_rows r ON f.key = r.key AND f.ts > r.ts
    WHERE r.equity IS NOT NULL OR EXISTS (FROM measured_moves m WHERE m.key = f.key AND m.ts <= f.ts)`;
}

/**
 * The money that moved between the points of each of so many windows from `offset` on; what came before a run's first
 * point is its base.
 */
function flowsSql(offset: number, windows: number): string {
  return `
    INSERT INTO measured_flows
    WITH ends AS (
      SELECT p.w, p.key, min(p.ts) AS first_ts, max(p.ts) AS last_ts FROM measured_points p
      WHERE p.w >= ${offset} AND p.w < ${offset + windows}
      GROUP BY ALL
    ),
    opened AS (SELECT r.key, min(r.ts) AS ts FROM measured_rows r GROUP BY ALL),
    -- a move counts at the point at or after it
    moved AS (
      SELECT m.key, r.ts, sum(m.amount) AS amount
      FROM measured_moves m ASOF JOIN measured_rows r ON m.key = r.key AND m.ts <= r.ts
      GROUP BY ALL
    )
    SELECT e.w, e.key, m.ts, m.amount
    FROM ends e JOIN moved m ON e.key = m.key JOIN opened o ON e.key = o.key
    WHERE m.ts > o.ts AND m.ts > e.first_ts AND m.ts <= e.last_ts`;
}
