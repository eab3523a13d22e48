import { identifier, literal } from "../../duckdb/sql.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import { createDoubleView, createRuns, createRunsView } from "../query/query-views.ts";
import { type ExportedAnalytics, writeAnalytics } from "./export-analytics.ts";
import type { ExportSession } from "./export-session.ts";
import type { LinkedRuns } from "./linked-rows.ts";

export interface DatabaseParts {
  readonly onTable?: (table: TableName) => void;
  /** Adds the tables of trades and the macros. */
  readonly analytics?: ExportedAnalytics | undefined;
  /** Makes it read the files in `tables/` instead of containing copies of their rows. */
  readonly views?: LinkedRuns | undefined;
}

/**
 * The oldest version of DuckDB that can read the file. From this version a database and its log identify each other: if
 * someone with the old file open keeps writing, opening the new one is an error; older versions mix the two.
 */
const storageVersion = "v1.4.0";
/** The smallest there is, so that views, which are a few kilobytes of text, are a small file. */
const smallBlocks = 16_384;

/**
 * Writes a DuckDB database: the tables with their rows, or views of them, `<table>_f` with doubles for tables with
 * exact columns, and `runs`, one row per run; with analytics also the tables of trades and the macros. Returns each
 * table's rows. Afterwards the file is closed and complete, without a log.
 */
export async function writeDatabase(
  session: ExportSession,
  tables: readonly Table[],
  file: string,
  { onTable, analytics, views }: DatabaseParts,
): Promise<bigint[]> {
  if (analytics !== undefined) await session.makeTradeTables(analytics.instruments);
  const rowsOf = new Map<Table, string>();
  for (const table of tables) {
    rowsOf.set(
      table,
      views === undefined ? session.rowsSql(table) : await session.linkedRowsSql(table, views),
    );
  }
  return await session.work(async (connection) => {
    const blocks = views === undefined ? "" : `, BLOCK_SIZE ${smallBlocks}`;
    await connection.run(
      `ATTACH ${literal(file)} AS exported (STORAGE_VERSION ${literal(storageVersion)}${blocks})`,
    );
    const counts: bigint[] = [];
    try {
      // views keep the names they were created with, so everything is created under the names that readers will see
      await connection.run("USE exported");
      const { manifests } = session;
      const fewRuns = manifests.length > 0 && manifests.length <= 100;
      await (views !== undefined && fewRuns ? createRunsView : createRuns)(connection, manifests);
      for (const [table, rows] of rowsOf) {
        onTable?.(table.name);
        const kind = views === undefined ? "TABLE" : "VIEW";
        await connection.run(`CREATE ${kind} ${identifier(table.name)} AS ${rows}`);
        const counted = await connection.runAndReadAll(`SELECT count(*) FROM ${identifier(table.name)}`);
        counts.push(BigInt(String(counted.getRows()[0]?.[0])));
        await createDoubleView(connection, table);
      }
      if (analytics !== undefined) await writeAnalytics(connection, analytics);
    } finally {
      await connection.run("USE memory");
    }
    await connection.run("CHECKPOINT exported");
    await connection.run("DETACH exported");
    return counts;
  });
}
