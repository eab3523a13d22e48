import type { DuckDBConnection } from "@duckdb/node-api";
import { identifier } from "../../duckdb/sql.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { copyInstrumentValues } from "../instruments/write-instrument-values.ts";
import { createMacros } from "../sql/macros.ts";
import { tradeTableNames } from "../trades/trade-tables.ts";

/** What a database gets besides the tables, to answer like `runvault query`. */
export interface ExportedAnalytics {
  /** The instruments file for trades and macros; null to use the defaults. */
  readonly instruments: InstrumentsFile | null;
}

/** Writes the tables of trades and the instruments, computed in `memory`, and the macros into the current database. */
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
