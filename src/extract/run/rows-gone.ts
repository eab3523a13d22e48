import type { DuckDBConnection } from "@duckdb/node-api";
import { parquetRows } from "../../duckdb/sql.ts";

/**
 * Counts the rows in a table's earlier Parquet files whose seq no row in the present ones has. Where seq is numbered here,
 * rows are matched by timestamp and seq.
 */
export async function countGone(
  connection: DuckDBConnection,
  before: readonly string[],
  now: readonly string[],
  isNumberedHere = false,
): Promise<bigint> {
  if (before.length === 0) return 0n;
  const others =
    now.length === 0
      ? ""
      : ` ANTI JOIN ${parquetRows(now)} AS now USING (${isNumberedHere ? "ts_event, seq" : "seq"})`;
  const sql = `SELECT count(*) FROM ${parquetRows(before)} AS before${others}`;
  const [[count]] = (await connection.runAndReadAll(sql)).getRows() as [[bigint]];
  return count;
}
