import type { DuckDBConnection } from "@duckdb/node-api";
import { copyExact, decimalSql, type ExactValues, exactValues, int64s } from "../../duckdb/exact-vector.ts";
import { literal } from "../../duckdb/sql.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import type { DecimalType } from "../../model/profile/exact-types.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { BarSource } from "../instruments/instrument.ts";
import { RangeExtremum } from "./range-extremum.ts";

/** Bars of one symbol, venue and interval, as columns. */
export interface BarColumns {
  readonly count: number;
  /** UNIX nanoseconds. */
  readonly close: { readonly ts: BigInt64Array; readonly price: ExactValues };
  /** The lowest and the highest price of the bars that lie whole between two instants; null if none does. */
  within(from: Nanoseconds, to: Nanoseconds): { readonly low: bigint; readonly high: bigint } | null;
}

/**
 * Reads bars from the view `bars`, which has to show one run alone. A bar without a low, a high or a close says nothing
 * about prices and is left out.
 */
export async function readBars(
  connection: DuckDBConnection,
  { symbol, venue, intervalNs }: BarSource,
  priceType: DecimalType,
): Promise<BarColumns> {
  const where = [
    `symbol = ${literal(symbol)}`,
    `venue = ${literal(venue)}`,
    `interval_ns = ${intervalNs}`,
    "low IS NOT NULL AND high IS NOT NULL AND close IS NOT NULL",
  ].join(" AND ");
  const counted = await connection.runAndReadAll(`SELECT count(*) FROM bars WHERE ${where}`);
  const count = Number(counted.getRows()[0]![0]);
  const [opened, closed] = [new BigInt64Array(count), new BigInt64Array(count)];
  const [low, high, close] = [0, 1, 2].map(() => exactValues(priceType, count)) as [
    ExactValues,
    ExactValues,
    ExactValues,
  ];
  const prices = ["low", "high", "close"].map((column) => `CAST(${column} AS ${decimalSql(priceType)})`);
  const sql = `SELECT ts_open, ts_event, ${prices.join(", ")} FROM bars WHERE ${where}`;
  let at = 0;
  for await (const chunk of countedStream(await connection.stream(sql), count)) {
    opened.set(int64s(chunk, 0), at);
    closed.set(int64s(chunk, 1), at);
    for (const [column, to] of [low, high, close].entries()) copyExact(chunk, 2 + column, to, at);
    at += chunk.rows;
  }
  const opensFrom = openings(opened, closed);
  const lowest = new RangeExtremum(low, "smallest");
  const highest = new RangeExtremum(high, "largest");
  return {
    count,
    close: { ts: closed, price: close },
    within: (from, to) => {
      // bars of one length open in the order in which they close
      const first = opensFrom(from);
      const end = firstWhere(closed, (ts) => ts > to);
      if (first >= end) return null;
      return { low: lowest.over(first, end), high: highest.over(first, end) };
    },
  };
}

/**
 * Returns the first bar that opens at an instant or later. If all bars have the same length, as usual, no column of
 * opening times is kept.
 */
function openings(opened: BigInt64Array, closed: BigInt64Array): (from: Nanoseconds) => number {
  const length = opened.length === 0 ? 0n : closed[0]! - opened[0]!;
  for (let bar = 0; bar < opened.length; bar++) {
    if (BigInt.asIntN(64, closed[bar]! - opened[bar]!) !== length)
      return (from) => firstWhere(opened, (ts) => ts >= from);
  }
  return (from) => firstWhere(closed, (ts) => ts - length >= from);
}

/** The first place in a rising column where a condition holds, and its length where it never does. */
function firstWhere(column: BigInt64Array, holds: (value: bigint) => boolean): number {
  let [from, to] = [0, column.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(column[middle]!)) to = middle;
    else from = middle + 1;
  }
  return from;
}
