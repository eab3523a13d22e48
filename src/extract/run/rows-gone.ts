import type { DuckDBConnection } from "@duckdb/node-api";
import { parquetRows } from "../../duckdb/sql.ts";

/**
 * How many rows of some Parquet files of a table have a seq that no row of others has, which may be in none; where seq is
 * numbered here, a place in their timestamp that no row of the others has.
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
