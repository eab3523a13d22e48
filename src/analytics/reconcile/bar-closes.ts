import type { DuckDBConnection } from "@duckdb/node-api";
import {
  copyExact,
  decimalSql,
  type ExactValues,
  exactValues,
  int32s,
  int64s,
} from "../../duckdb/exact-vector.ts";
import { isAmong, literal } from "../../duckdb/sql.ts";
import { createTextType } from "../../duckdb/text-type.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import type { DecimalType } from "../../model/profile/exact-types.ts";
import type { BarSource } from "../instruments/instrument.ts";

/** The closes of several sources' bars, in order of time. */
export interface BarCloses {
  readonly count: number;
  /** UNIX nanoseconds. */
  readonly ts: BigInt64Array;
  readonly price: ExactValues;
  /** Index in the sources. */
  readonly source: Int32Array;
  /** Bars by source. */
  readonly counts: readonly number[];
}

/**
 * Reads the closes of all sources at once from the view `bars`, which must show a single run: a query for each of a
 * thousand would take far longer. Leaves out bars without a low, a high or a close, as for trades.
 */
export async function readCloses(
  connection: DuckDBConnection,
  sources: readonly BarSource[],
  priceType: DecimalType,
): Promise<BarCloses> {
  const counts = sources.map(() => 0);
  const isPriced = "low IS NOT NULL AND high IS NOT NULL AND close IS NOT NULL";
  const symbols = distinct(sources.map(({ symbol }) => symbol));
  const venues = distinct(sources.map(({ venue }) => venue));
  const intervals = distinct(sources.map(({ intervalNs }) => String(intervalNs)));
  const where = [
    isAmong("symbol", symbols.map(literal)),
    isAmong("venue", venues.map(literal)),
    isAmong("interval_ns", intervals),
    isPriced,
  ].join(" AND ");
  // sources by the places of what names them, and the other way round
  const codeOf = (symbol: number, venue: number, interval: number) =>
    (symbol * venues.length + venue) * intervals.length + interval;
  const bySource = new Map(
    sources.map(({ symbol, venue, intervalNs }, source) => [
      codeOf(symbols.indexOf(symbol), venues.indexOf(venue), intervals.indexOf(String(intervalNs))),
      source,
    ]),
  );
  const code = [
    await codeSql(connection, "symbol", "symbol", symbols),
    await codeSql(connection, "venue", "venue", venues),
    await codeSql(connection, "interval", "CAST(interval_ns AS VARCHAR)", intervals),
  ];
  const grouped = await connection.runAndReadAll(
    `SELECT ${code.join(", ")}, count(*) FROM bars WHERE ${where} GROUP BY ALL`,
  );
  let seen = 0;
  for (const [symbol, venue, interval, rows] of grouped.getRows().map((row) => row.map(Number))) {
    seen += rows!;
    const source = bySource.get(codeOf(symbol!, venue!, interval!));
    if (source !== undefined) counts[source] = rows!;
  }
  const count = counts.reduce((sum, rows) => sum + rows, 0);
  const closes = {
    ts: new BigInt64Array(count),
    price: exactValues(priceType, count),
    source: new Int32Array(count),
  };
  const result = await connection.stream(
    `SELECT ts_event, CAST(close AS ${decimalSql(priceType)}), ${code.join(", ")} FROM bars WHERE ${where}`,
  );
  let at = 0;
  for await (const chunk of countedStream(result, seen)) {
    const ts = int64s(chunk, 0);
    const price = exactValues(priceType, chunk.rows);
    copyExact(chunk, 1, price, 0);
    const [symbol, venue, interval] = [2, 3, 4].map((column) => int32s(chunk, column)) as [
      Int32Array,
      Int32Array,
      Int32Array,
    ];
    for (let row = 0; row < chunk.rows; row++) {
      const source = bySource.get(codeOf(symbol[row]!, venue[row]!, interval[row]!));
      // the market and the interval are wanted, but not together
      if (source === undefined) continue;
      closes.ts[at] = ts[row]!;
      closes.price[at] = price[row]!;
      closes.source[at] = source;
      at++;
    }
  }
  return { count, ...closes, counts };
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

/** The place of a bar's text among these, from 0; -1 if it is not among them. */
async function codeSql(
  connection: DuckDBConnection,
  name: string,
  column: string,
  texts: readonly string[],
): Promise<string> {
  if (texts.length <= 1) return "CAST(0 AS INTEGER)";
  const type = await createTextType(connection, `${name} of bars`, texts);
  return `CAST(coalesce(enum_code(TRY_CAST(${column} AS ${type})), -1) AS INTEGER)`;
}
