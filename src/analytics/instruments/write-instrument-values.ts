import type { DuckDBConnection } from "@duckdb/node-api";
import { literal } from "../../duckdb/sql.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { AllRunViews } from "../run-views.ts";
import type { Instrument } from "./instrument.ts";
import type { InstrumentsFile } from "./read-instruments.ts";
import { resolveInstruments } from "./resolve-instruments.ts";
import { readRunFacts } from "./run-facts.ts";

/**
 * Makes the macro `instrument_values` return what an instruments file says about the markets of a run's orders, fills
 * and factors; the views must show only that run. Throws `invalid_argument` if the instruments are unclear.
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
  await connection.run(`CREATE TABLE IF NOT EXISTS instrument_rows (
    instance_id VARCHAR, run_id VARCHAR, symbol VARCHAR, venue VARCHAR, currency VARCHAR, multiplier DOUBLE, is_inverse BOOLEAN,
    bar_symbol VARCHAR, bar_venue VARCHAR, bar_interval BIGINT)`);
  const ids = [run.instanceId, run.runId].map(literal);
  await connection.run(`DELETE FROM instrument_rows WHERE instance_id = ${ids[0]} AND run_id = ${ids[1]}`);
  for (let at = 0; at < markets.length; at += batch) {
    const rows = markets
      .slice(at, at + batch)
      .map(
        ({ symbol, venue }) =>
          `(${[...ids, literal(symbol), literal(venue), instrumentSql(resolved.of(symbol, venue))].join(", ")})`,
      );
    await connection.run(`INSERT INTO instrument_rows VALUES ${rows.join(", ")}`);
  }
  await connection.run("CREATE OR REPLACE MACRO instrument_values() AS TABLE FROM instrument_rows");
}

const batch = 1_000;

/**
 * The same for all visible runs: for statements and files that may need any of them. Does not create macros, which must
 * exist. Throws the signal's reason between two runs.
 */
export async function writeAllInstrumentValues(
  views: AllRunViews,
  file: InstrumentsFile,
  signal?: AbortSignal,
): Promise<void> {
  await views.show(marketTables, signal);
  const runs = marketTables.flatMap((table) => views.runsOf(table));
  try {
    for (const run of new Map(runs.map((one) => [JSON.stringify(one), one])).values()) {
      signal?.throwIfAborted();
      for (const table of marketTables) await views.showOnly(table, run);
      await writeInstrumentValues(views.connection, run, file);
    }
  } finally {
    for (const table of marketTables) await views.showAll(table);
  }
}

/** The tables that show a run's markets and the facts about their instruments. */
const marketTables = ["orders", "fills", "factors", "equity", "bars"] as const satisfies readonly TableName[];

/** Copies what was written into the database in use, which has the macros, from `memory`. */
export async function copyInstrumentValues(connection: DuckDBConnection): Promise<void> {
  await connection.run("CREATE TABLE instrument_rows AS FROM memory.main.instrument_rows");
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
