import { instantOf, macroRows, ns } from "../../analytics/section/macro-rows.ts";
import type { MeasuredRun } from "../../analytics/section/section.ts";
import { float64s, int64s } from "../../duckdb/exact-vector.ts";
import { literal } from "../../duckdb/sql.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import { formatScaled } from "../../model/fixed-point.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { type LinePoints, ReducedLines } from "./reduced-lines.ts";

/** The finest unit, over which nothing is summed: a portfolio of an account, in one currency. */
export interface SeriesKey {
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
}

/** The equity of one portfolio, in one currency. */
export interface Curve extends SeriesKey {
  /** Of its equity rows. */
  readonly rows: number;
  readonly from: Nanoseconds;
  readonly to: Nanoseconds;
  /** Exact. */
  readonly firstEquity: string;
  readonly lastEquity: string;
  /**
   * Every equity row, reduced to what a screen can show: equity, and below it the drawdown, which is wealth (equity
   * without deposits and withdrawals) over its highest so far, minus 1, with gaps once equity has reached zero.
   */
  readonly lines: LinePoints;
  /** The returns of the sessions, in order. */
  readonly returns: Float64Array;
}

/** Columns of pixels that lines are reduced to: as many as the widest chart has. */
export const columns = 700;

interface Point {
  readonly i: number;
  readonly ts: Nanoseconds;
  readonly value: number;
  readonly ret: number | null;
}

/** Equity and drawdown of each portfolio, and its session returns. Keeps the sessions in memory, but no equity row. */
export async function readCurves(run: MeasuredRun): Promise<readonly Curve[]> {
  const points = await sessionPoints(run);
  const asked = await run.connection.runAndReadAll(`
    WITH spans AS (
      SELECT account, portfolio, currency, count(*) AS points, min(ts_event) AS from_ts, max(ts_event) AS to_ts
      FROM equity WHERE equity IS NOT NULL GROUP BY ALL
    ),
    -- sorts only the rows of the two instants
    ends AS (
      SELECT account, portfolio, currency, ts_event, seq, equity
      FROM equity SEMI JOIN (
        SELECT account, portfolio, currency, unnest([from_ts, to_ts]) AS ts_event FROM spans
      ) s USING (account, portfolio, currency, ts_event)
      WHERE equity IS NOT NULL
    )
    SELECT account, portfolio, currency, points, epoch_ns(from_ts), epoch_ns(to_ts),
      CAST(arg_min(equity, (ts_event, seq)) AS VARCHAR), CAST(arg_max(equity, (ts_event, seq)) AS VARCHAR)
    FROM ends JOIN spans USING (account, portfolio, currency) GROUP BY ALL ORDER BY ALL`);
  const curves: Curve[] = [];
  const rows = asked.getRows();
  for (const [account, portfolio, currency, count, from, to, first, last] of rows) {
    const key = { account: String(account), portfolio: String(portfolio), currency: String(currency) };
    const own = points.get(JSON.stringify(key)) ?? [];
    const head = {
      ...{ ...key, rows: Number(count), from: instantOf(from), to: instantOf(to) },
      ...{ firstEquity: canonical(String(first)), lastEquity: canonical(String(last)) },
    };
    const lines = await readLines(run, head, own[0], rows.length === 1);
    const returns = Float64Array.from(own.flatMap(({ ret }) => ret ?? []));
    curves.push({ ...head, lines, returns });
  }
  return curves;
}

export function milliseconds(ts: Nanoseconds): number {
  return Number(ts / 1_000n) / 1_000;
}

async function sessionPoints(run: MeasuredRun): Promise<ReadonlyMap<string, readonly Point[]>> {
  const rows = await macroRows(run, { macro: "session_points", select: `i, ${ns("ts")}, value, ret` });
  const points = new Map<string, Point[]>();
  for (const { account, portfolio, currency, i, ts, value, ret } of rows) {
    const key = JSON.stringify({ account, portfolio, currency });
    const own = points.get(key) ?? [];
    own.push({
      ...{ i: Number(i), ts: instantOf(ts), value: Number(value) },
      ret: ret === null ? null : Number(ret),
    });
    points.set(key, own);
  }
  for (const own of points.values()) own.sort((a, b) => a.i - b.i);
  return points;
}

/** Deposits and withdrawals, in the order of time. */
interface Flow {
  readonly ts: number;
  readonly amount: number;
}

/**
 * Deposits and withdrawals of a portfolio. Those that name only the account belong to its only portfolio, as in the
 * macro `session_points`, which throws if that is unclear.
 */
async function readFlows({ connection }: MeasuredRun, key: SeriesKey): Promise<readonly Flow[]> {
  const { account, portfolio, currency } = key;
  const result = await connection.runAndReadAll(`
    SELECT epoch_ns(ts_event), CAST(CAST(amount AS VARCHAR) AS DOUBLE) FROM events
    WHERE kind IN ('account.deposit', 'account.withdrawal') AND amount IS NOT NULL
      AND account = ${literal(account)} AND currency = ${literal(currency)} AND portfolio IN ('', ${literal(portfolio)})
    ORDER BY ts_event, seq`);
  return result
    .getRows()
    .map(([ts, amount]) => ({ ts: milliseconds(instantOf(ts)), amount: Number(amount) }));
}

/** One pass over a portfolio's equity rows, as columns. */
async function readLines(
  run: MeasuredRun,
  { account, portfolio, currency, rows, from, to }: SeriesKey & Pick<Curve, "rows" | "from" | "to">,
  base: Point | undefined,
  isOnly: boolean,
): Promise<LinePoints> {
  const [first, last] = [milliseconds(from), milliseconds(to)];
  const begins = base === undefined ? first : Math.min(first, milliseconds(base.ts));
  const lines = new ReducedLines(begins, last, columns);
  const flows = await readFlows(run, { account, portfolio, currency });
  // flows up to the first row belong to the base point; without a deposit, the first row is the base
  const isDeposit = base !== undefined && base.ts < from;
  let next = flows.findIndex(({ ts }) => ts > first);
  if (next < 0) next = flows.length;
  let since = isDeposit ? base.value : Number.NaN;
  let factor = 1;
  let top = 1;
  let isOver = false;
  if (isDeposit) lines.add(begins, base.value, 0);
  const add = (ts: number, value: number) => {
    if (isOver) {
      lines.add(ts, value, Number.NaN);
      return;
    }
    if (Number.isNaN(since)) since = value;
    let flow = 0;
    for (; next < flows.length && flows[next]!.ts <= ts; next++) flow += flows[next]!.amount;
    const wealth = since === 0 ? 0 : ((value - flow) / since) * factor;
    // a rounding error from removing flows in doubles is not a drawdown
    if (wealth > top || Math.abs(wealth / top - 1) < 1e-12) top = wealth;
    lines.add(ts, value, Math.max(wealth / top - 1, -1));
    isOver = value <= 0 || value - flow <= 0;
    if (flow === 0) return;
    since = value;
    factor = wealth;
  };
  const mine = `account = ${literal(account)} AND portfolio = ${literal(portfolio)} AND currency = ${literal(currency)}`;
  const result = await run.connection.stream(
    `SELECT ts_event, CAST(equity AS DOUBLE) FROM equity WHERE equity IS NOT NULL${isOnly ? "" : ` AND ${mine}`}`,
  );
  // the last of several rows at one instant counts
  let held: { ts: number; value: number } | null = null;
  for await (const chunk of countedStream(result, rows)) {
    const times = int64s(chunk, 0);
    const values = float64s(chunk, 1);
    for (let row = 0; row < chunk.rows; row++) {
      const ts = Number(times[row]! / 1_000n) / 1_000;
      if (held !== null && ts !== held.ts) add(held.ts, held.value);
      held = { ts, value: values[row]! };
    }
  }
  if (held !== null) add(held.ts, held.value);
  return lines.points();
}

/** A decimal without trailing zeros. */
function canonical(text: string): string {
  const [, scale = ""] = text.split(".");
  return formatScaled(BigInt(text.replace(".", "")), scale.length);
}
