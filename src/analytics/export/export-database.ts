import { identifier, literal } from "../../duckdb/sql.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import { createDoubleView, createRuns } from "../query/query-views.ts";
import { type ExportedAnalytics, writeAnalytics } from "./export-analytics.ts";
import type { ExportSession } from "./export-session.ts";

/**
 * Writes a DuckDB database: the tables with their rows, `<table>_f` with doubles where a table has exact columns, and
 * `runs`, one row a run; with analytics also the tables of trades and the macros. Gives each table's rows. The file is closed and whole afterwards, without a log beside it.
 */
export async function writeDatabase(
  session: ExportSession,
  tables: readonly Table[],
  file: string,
  onTable?: (table: TableName) => void,
  analytics?: ExportedAnalytics,
): Promise<bigint[]> {
  if (analytics !== undefined) await session.makeTradeTables(analytics.instruments);
  return await session.work(async (connection) => {
    await connection.run(`ATTACH ${literal(file)} AS exported`);
    const rows: bigint[] = [];
    try {
      // views remember the names they were made with, so all is made as a reader of the file will see it
      await connection.run("USE exported");
      for (const table of tables) {
        onTable?.(table.name);
        const result = await connection.runAndReadAll(
          `CREATE TABLE ${identifier(table.name)} AS ${session.rowsSql(table)}`,
        );
        rows.push(BigInt(String(result.getRows()[0]?.[0])));
        await createDoubleView(connection, table);
      }
      await createRuns(connection, session.manifests);
      if (analytics !== undefined) await writeAnalytics(connection);
    } finally {
      await connection.run("USE memory");
    }
    await connection.run("CHECKPOINT exported");
    await connection.run("DETACH exported");
    return rows;
  });
}
