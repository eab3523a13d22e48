import type { DuckDBConnection } from "@duckdb/node-api";
import { literal } from "../../duckdb/sql.ts";
import type { RunRef } from "../../model/source.ts";
import type { Instrument } from "./instrument.ts";
import type { InstrumentsFile } from "./read-instruments.ts";
import { resolveInstruments } from "./resolve-instruments.ts";
import { readRunFacts } from "./run-facts.ts";

/**
 * Has the macro `instrument_values` give what a file of instruments says of the markets of a run's orders, fills and
 * factors; the views have to show that run alone. Throws `invalid_argument` where it is not clear what they are.
 */
export async function writeInstrumentValues(
  connection: DuckDBConnection,
  run: RunRef,
  file: InstrumentsFile,
): Promise<void> {
  const facts = await readRunFacts(connection, run);
  const found = await connection.runAndReadAll(`
    SELECT symbol, venue, count(*), min(seq) FROM (
      SELECT symbol, venue, seq FROM orders UNION ALL SELECT symbol, venue, seq FROM fills
      UNION ALL SELECT symbol, venue, seq FROM factors)
    GROUP BY ALL ORDER BY ALL`);
  const markets = found.getRows().map(([symbol, venue, rows, firstSeq]) => ({
    ...{ symbol: String(symbol), venue: String(venue) },
    ...{ rows: BigInt(String(rows)), firstSeq: BigInt(String(firstSeq)) },
  }));
  const resolved = resolveInstruments({ ...facts, markets }, file);
  await connection.run(`CREATE OR REPLACE TABLE instrument_rows (
    symbol VARCHAR, venue VARCHAR, currency VARCHAR, multiplier DOUBLE, is_inverse BOOLEAN,
    bar_symbol VARCHAR, bar_venue VARCHAR, bar_interval BIGINT)`);
  for (const { symbol, venue } of markets) {
    const values = [symbol, venue].map(literal).join(", ");
    await connection.run(
      `INSERT INTO instrument_rows VALUES (${values}, ${instrumentSql(resolved.of(symbol, venue))})`,
    );
  }
  await connection.run("CREATE OR REPLACE MACRO instrument_values() AS TABLE FROM instrument_rows");
}

function instrumentSql({ currency, multiplier, kind, bars }: Instrument): string {
  const { value, scale } = multiplier;
  const factor = `CAST(${literal(String(value))} AS DOUBLE) / 1e${scale}`;
  const source =
    bars === null
      ? "NULL, NULL, NULL"
      : `${literal(bars.symbol)}, ${literal(bars.venue)}, ${bars.intervalNs}::BIGINT`;
  return `${literal(currency)}, ${factor}, ${kind === "inverse"}, ${source}`;
}
