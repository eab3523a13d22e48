import type { DuckDBConnection } from "@duckdb/node-api";
import { identifier } from "../../duckdb/sql.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { createMacros } from "../sql/macros.ts";
import { tradeTableNames } from "../trades/trade-tables.ts";

/** What goes into a database beside the tables, so that it answers as a query does. */
export interface ExportedAnalytics {
  /** What is known of the instruments that trades are told of; null for what is assumed without it. */
  readonly instruments: InstrumentsFile | null;
}

/** Writes the tables of trades, computed in `memory`, and the macros into the database in use. */
export async function writeAnalytics(connection: DuckDBConnection): Promise<void> {
  for (const name of tradeTableNames) {
    await connection.run(`CREATE TABLE ${identifier(name)} AS FROM memory.main.${identifier(name)}`);
  }
  await createMacros(connection);
}
