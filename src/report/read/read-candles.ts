import { instantOf } from "../../analytics/section/macro-rows.ts";
import type { MeasuredRun } from "../../analytics/section/section.ts";
import { isAmong, literal } from "../../duckdb/sql.ts";
import { milliseconds } from "./read-curves.ts";

/** The day with the most fills of one symbol: its bars and fills, in milliseconds since 1970 and doubles. */
export interface BusiestDay {
  readonly symbol: string;
  /** Of the bars. */
  readonly venue: string;
  /** `2022-01-03`, a session. */
  readonly day: string;
  /** All fills of that day; those that are drawn may be fewer. */
  readonly fillsOfDay: number;
  readonly bars: {
    readonly times: Float64Array;
    readonly intervalMs: number;
    /** Of the rows from which the bars were aggregated. */
    readonly ownIntervalMs: number;
    readonly open: Float64Array;
    readonly high: Float64Array;
    readonly low: Float64Array;
    readonly close: Float64Array;
  };
  readonly fills: {
    readonly times: Float64Array;
    readonly prices: Float64Array;
    readonly quantities: Float64Array;
    readonly isBuy: Uint8Array;
  };
}

/** Candles that fit on a page. */
const mostBars = 160;

/** Fills that a chart is given one by one. */
const mostFills = 5_000;

/** Lengths that people read, in milliseconds. */
const lengths = [1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440].map((minutes) => minutes * 60_000);

/**
 * Bars and fills of the symbol and session with the most fills, among symbols with bars. If there are too many bars,
 * they are aggregated, and the fills of a side within a candle become one at their average price. Returns a reason if
 * there is nothing to draw.
 */
export async function readBusiestDay(run: MeasuredRun): Promise<BusiestDay | string> {
  const { connection, options } = run;
  const trades = await run.trades();
  const source = new Map(
    trades.instruments.instruments.flatMap(({ symbol, bars }) => (bars === null ? [] : [[symbol, bars]])),
  );
  if (trades.fills.count === 0) return "no fills";
  if (source.size === 0) return "no bars of the symbols that were traded";
  const isWanted = isAmong("symbol", [...source.keys()].map(literal));
  const busiest = await connection.runAndReadAll(`
    SELECT symbol, CAST(day AS VARCHAR), n, epoch_ns(opens), epoch_ns(closes) FROM (
      SELECT symbol, session_day(ts_event, ${literal(options.session)}) AS day, count(*) AS n,
        session_close(day - 1, ${literal(options.session)}) AS opens,
        session_close(day, ${literal(options.session)}) AS closes
      FROM fills WHERE ${isWanted} GROUP BY ALL)
    ORDER BY n DESC, 2, 1 LIMIT 1`);
  const [symbol, day, fillsOfDay, opens, closes] = busiest.getRows()[0]!;
  const bars = source.get(String(symbol))!;
  const [from, to] = [instantOf(opens), instantOf(closes)];
  if (bars.intervalNs <= 0n) return `the bars of ${String(symbol)} have no length`;
  const ownIntervalMs = Number(bars.intervalNs) / 1e6;
  const ofBars = [
    `symbol = ${literal(bars.symbol)} AND venue = ${literal(bars.venue)} AND interval_ns = ${bars.intervalNs}`,
    `ts_event > make_timestamp_ns(${from}) AND ts_event <= make_timestamp_ns(${to})`,
    "open IS NOT NULL AND high IS NOT NULL AND low IS NOT NULL AND close IS NOT NULL",
  ].join(" AND ");
  const counted = await connection.runAndReadAll(`SELECT count(*) FROM bars WHERE ${ofBars}`);
  const count = Number(counted.getRows()[0]![0]);
  if (count === 0) return `no bars of ${String(symbol)} on ${String(day)}, the busiest day`;
  const least = (count / mostBars) * ownIntervalMs;
  const intervalMs =
    count <= mostBars
      ? ownIntervalMs
      : (lengths.find((length) => length >= least && length % ownIntervalMs === 0) ??
        Math.ceil(count / mostBars) * ownIntervalMs);
  const step = BigInt(Math.round(intervalMs * 1e6));
  const candles = await connection.runAndReadAll(`
    SELECT (epoch_ns(ts_open) - ${from}) // ${step} AS part, arg_min(open, ts_open), max(high), min(low), arg_max(close, ts_open)
    FROM bars_f WHERE ${ofBars} GROUP BY part ORDER BY part`);
  const column = (rows: readonly (readonly unknown[])[], index: number) =>
    Float64Array.from(rows, (row) => Number(row[index]));
  const rows = candles.getRows();
  const start = milliseconds(from);
  const own = `symbol = ${literal(String(symbol))} AND ts_event > make_timestamp_ns(${from}) AND ts_event <= make_timestamp_ns(${to})`;
  const isWhole = Number(fillsOfDay) <= mostFills;
  const fills = await connection.runAndReadAll(
    isWhole
      ? `SELECT epoch_ns(ts_event), price, quantity, side = 'BUY' FROM fills_f WHERE ${own} ORDER BY ts_event, seq`
      : `SELECT ${from} + part * ${step} + ${step / 2n}, sum(price * quantity) / nullif(sum(quantity), 0), sum(quantity), is_buy FROM (
          SELECT (epoch_ns(ts_event) - 1 - ${from}) // ${step} AS part, price, quantity, side = 'BUY' AS is_buy
          FROM fills_f WHERE ${own}) GROUP BY part, is_buy HAVING sum(quantity) > 0 ORDER BY part, is_buy`,
  );
  const drawn = fills.getRows();
  return {
    ...{ symbol: String(symbol), venue: bars.venue, day: String(day), fillsOfDay: Number(fillsOfDay) },
    bars: {
      times: Float64Array.from(rows, ([part]) => start + Number(part) * intervalMs),
      ...{ intervalMs, ownIntervalMs },
      ...{ open: column(rows, 1), high: column(rows, 2), low: column(rows, 3), close: column(rows, 4) },
    },
    fills: {
      times: Float64Array.from(drawn, ([ts]) => milliseconds(instantOf(ts))),
      ...{ prices: column(drawn, 1), quantities: column(drawn, 2) },
      isBuy: Uint8Array.from(drawn, (row) => Number(row[3])),
    },
  };
}
