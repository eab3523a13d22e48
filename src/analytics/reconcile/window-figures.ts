import type { DuckDBConnection } from "@duckdb/node-api";
import { squareRoot } from "../../model/fixed-point.ts";
import type { RunRef } from "../../model/source.ts";
import { timestampMax, timestampMin } from "../../model/time.ts";
import { createMacros } from "../sql/macros.ts";
import type { AccountKey } from "./account-key.ts";
import { keySql, moveKeySql } from "./account-rows.ts";
import type { BooksSource } from "./check-books.ts";
import { layersOf, type MetricWindow } from "./metric-windows.ts";

/** How the series of a window may have been made. */
export interface SeriesConvention {
  /** `(]`: a point at the window's end belongs to it; `[)`: to the next. */
  readonly edge: "(]" | "[)";
  /** What the first return is against: the point before the window, or the first one in it. */
  readonly base: "before" | "first";
  /** Whether deposits and withdrawals are taken off first. */
  readonly flows: boolean;
  /** What a return is over: from one point to the next, or a day. */
  readonly session: "bars" | "utc";
}

/** How a figure may have been computed of the series. */
export interface FigureConvention extends SeriesConvention {
  readonly ddof: 0 | 1;
  /** Periods a year. */
  readonly periods: number;
}

/** A figure by our own macros: a number, or none and why. */
export interface MeasuredFigure {
  readonly value: number | null;
  readonly reason: string | null;
  /** Returns. */
  readonly n: number;
}

/** Figures that a window has by name. */
export type MeasuredWindow = ReadonlyMap<string, MeasuredFigure>;

/** Figures of which deviations divide by n - ddof, and whether ddof is in the divisor. */
const withDdof = new Map([
  ["volatility", "above"],
  ["sharpe", "below"],
] as const);

/** The same figure with deviations that divide by n - ddof; `performance` has 1. */
export function withDdofOf(name: string, { value, reason, n }: MeasuredFigure, ddof: 0 | 1): MeasuredFigure {
  const where = withDdof.get(name as "volatility");
  if (ddof === 1 || value === null || where === undefined) return { value, reason, n };
  const factor = squareRoot((n - 1) / n);
  return { value: where === "above" ? value * factor : value / factor, reason, n };
}

/**
 * Figures of windows of a run's equity points, by the macro `performance` that `runvault metrics` prints from. A window
 * becomes a series of its own: its points behind the one that its first return is against, and the money that moved.
 * While it measures, the views `equity` and `events` are of these; afterwards they show the run again.
 */
export class WindowFigures {
  readonly #source: BooksSource;
  readonly #keys: readonly AccountKey[];
  #isReady = false;

  constructor(source: BooksSource, keys: readonly AccountKey[]) {
    this.#source = source;
    this.#keys = keys;
  }

  /** The figures of each window, in their order. */
  async of(
    windows: readonly MetricWindow[],
    convention: SeriesConvention,
    periods: number,
  ): Promise<readonly MeasuredWindow[]> {
    const { connection, run } = this.#source;
    const measured = windows.map(() => new Map<string, MeasuredFigure>());
    if (windows.length === 0) return measured;
    await this.#prepare();
    await showRun(this.#source, run);
    try {
      await this.#cut(windows, convention);
      const result = await connection.runAndReadAll(`
        SELECT CAST(portfolio AS INTEGER), metric, value, reason, CAST(n AS INTEGER)
        FROM performance('', '', base := 'first', session := '${convention.session}', periods := CAST(${periods} AS DOUBLE))`);
      for (const [window, metric, value, reason, n] of result.getRows()) {
        measured[Number(window)]!.set(String(metric), {
          value: value === null ? null : Number(value),
          reason: reason === null ? null : String(reason),
          n: Number(n),
        });
      }
    } finally {
      await showRun(this.#source, run);
      await connection.run("DROP TABLE IF EXISTS measured_points; DROP TABLE IF EXISTS measured_flows");
    }
    return measured;
  }

  async #prepare(): Promise<void> {
    if (this.#isReady) return;
    await createMacros(this.#source.connection);
    this.#isReady = true;
  }

  /** Has the views `equity` and `events` show the windows' series, a portfolio each. */
  async #cut(windows: readonly MetricWindow[], convention: SeriesConvention): Promise<void> {
    const { connection } = this.#source;
    await connection.run(`
      CREATE TEMP TABLE measured_rows AS
        SELECT ${keySql(this.#keys)} AS key, ts_event AS ts, max_by(equity, seq) AS equity FROM equity GROUP BY ALL ORDER BY key, ts`);
    await connection.run(`
      CREATE TEMP TABLE measured_moves AS
        SELECT ${moveKeySql(this.#keys)} AS key, ts_event AS ts, sum(amount) AS amount FROM events
        WHERE kind IN ('account.deposit', 'account.withdrawal') AND amount IS NOT NULL GROUP BY ALL ORDER BY key, ts`);
    await connection.run(
      "CREATE TEMP TABLE measured_windows (layer INTEGER, w INTEGER, key INTEGER, begins TIMESTAMP_NS, ends TIMESTAMP_NS)",
    );
    try {
      await writeWindows(connection, windows);
      await connection.run(pointsSql(convention));
      await connection.run(flowsSql(convention));
    } finally {
      await connection.run(
        "DROP TABLE measured_rows; DROP TABLE measured_moves; DROP TABLE measured_windows",
      );
    }
    await connection.run(`
      CREATE OR REPLACE VIEW equity AS
        SELECT '' AS instance_id, '' AS run_id, '' AS account, CAST(w AS VARCHAR) AS portfolio, '' AS currency,
               ts AS ts_event, 0 AS seq, equity FROM measured_points`);
    await connection.run(`
      CREATE OR REPLACE VIEW events AS
        SELECT '' AS instance_id, '' AS run_id, '' AS account, CAST(w AS VARCHAR) AS portfolio, '' AS currency,
               ts AS ts_event, 0 AS seq, 'account.deposit' AS kind, amount FROM measured_flows`);
  }
}

async function showRun(source: BooksSource, run: RunRef): Promise<void> {
  await source.showOnly("equity", run);
  await source.showOnly("events", run);
}

/** Behind any point: the end of a window that ends with the run. */
const forever = `make_timestamp_ns(${timestampMax})`;
const never = `make_timestamp_ns(${timestampMin})`;

async function writeWindows(connection: DuckDBConnection, windows: readonly MetricWindow[]): Promise<void> {
  const instant = (ns: bigint | null, otherwise: string) =>
    ns === null ? otherwise : `make_timestamp_ns(${ns})`;
  const rows = layersOf(windows).flatMap((places, layer) =>
    places.map((place) => {
      const { key, from, to } = windows[place]!;
      return `(${layer}, ${place}, ${key}, ${instant(from, never)}, ${instant(to, forever)})`;
    }),
  );
  for (let first = 0; first < rows.length; first += 1000)
    await connection.run(`INSERT INTO measured_windows VALUES ${rows.slice(first, first + 1000).join(", ")}`);
}

/** The points of each window; with the base `before`, behind the point before it, or what was deposited until then. */
function pointsSql({ edge, base, session }: SeriesConvention): string {
  const isBefore = edge === "(]" ? "<=" : "<";
  const isBehind = edge === "(]" ? ">" : ">=";
  // under `utc` the base has to be of a day of its own
  const baseTs =
    session === "bars"
      ? "make_timestamp_ns(epoch_ns(f.ts) - 1)"
      : "make_timestamp_ns(floor_divide(epoch_ns(f.ts) - 1, 86400000000000) * 86400000000000)";
  const inside = `
    SELECT w.w, w.key, r.ts, r.equity
    FROM (SELECT r.*, l.layer FROM measured_rows r CROSS JOIN (SELECT DISTINCT layer FROM measured_windows) l) r
    ASOF JOIN measured_windows w ON r.layer = w.layer AND r.key = w.key AND r.ts ${isBefore} w.ends
    WHERE r.ts ${isBehind} w.begins`;
  if (base === "first") return `CREATE TEMP TABLE measured_points AS ${inside}`;
  return `
    CREATE TEMP TABLE measured_points AS
    WITH inside AS MATERIALIZED (${inside}),
    firsts AS (SELECT i.w, i.key, min(i.ts) AS ts FROM inside i GROUP BY ALL)
    FROM inside
    UNION ALL
    SELECT f.w, f.key, ${baseTs}, coalesce(r.equity,
      (SELECT sum(m.amount) FROM measured_moves m WHERE m.key = f.key AND m.ts <= f.ts))
    FROM firsts f ASOF LEFT JOIN measured_rows r ON f.key = r.key AND f.ts > r.ts
    WHERE r.equity IS NOT NULL OR EXISTS (FROM measured_moves m WHERE m.key = f.key AND m.ts <= f.ts)`;
}

/** The money that moved between the points of each window; what came before a run's first point is its base. */
function flowsSql({ flows }: SeriesConvention): string {
  return `
    CREATE TEMP TABLE measured_flows AS
    WITH ends AS (SELECT p.w, p.key, min(p.ts) AS first_ts, max(p.ts) AS last_ts FROM measured_points p GROUP BY ALL),
    opened AS (SELECT r.key, min(r.ts) AS ts FROM measured_rows r GROUP BY ALL),
    -- a move counts at the point at or after it
    moved AS (
      SELECT m.key, r.ts, sum(m.amount) AS amount
      FROM measured_moves m ASOF JOIN measured_rows r ON m.key = r.key AND m.ts <= r.ts
      GROUP BY ALL
    )
    SELECT e.w, e.key, m.ts, m.amount
    FROM ends e JOIN moved m ON e.key = m.key JOIN opened o ON e.key = o.key
    WHERE ${flows} AND m.ts > o.ts AND m.ts > e.first_ts AND m.ts <= e.last_ts`;
}
