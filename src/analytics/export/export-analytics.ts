import type { DuckDBConnection } from "@duckdb/node-api";
import { identifier } from "../../duckdb/sql.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { copyInstrumentValues } from "../instruments/write-instrument-values.ts";
import { createMacros } from "../sql/macros.ts";
import { tradeTableNames } from "../trades/trade-tables.ts";

/** What goes into a database beside the tables, so that it answers as a query does. */
export interface ExportedAnalytics {
  /** What is known of the instruments that trades and macros are told of; null for what is assumed without it. */
  readonly instruments: InstrumentsFile | null;
}

/** Writes the tables of trades and what is known of instruments, computed in `memory`, and the macros into the database in use. */
export async function writeAnalytics(
  connection: DuckDBConnection,
  { instruments }: ExportedAnalytics,
): Promise<void> {
  for (const name of tradeTableNames) {
    await connection.run(`CREATE TABLE ${identifier(name)} AS FROM memory.main.${identifier(name)}`);
  }
  await createMacros(connection);
  if (instruments !== null) await copyInstrumentValues(connection);
}
