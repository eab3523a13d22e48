import type { DuckDBConnection } from "@duckdb/node-api";
import type { Table } from "../model/profile/table.ts";
import type { TimeBounds } from "../model/time.ts";
import type { RowHash } from "../row/row-hash.ts";
import { canonicalLineSql, rowHashSql } from "./canonical-sql.ts";
import { parquetRows } from "./sql.ts";
import { whereSql } from "./where-sql.ts";

/**
 * The row hash of Parquet files' rows within the bounds. DuckDB reads no more of them than needed, and keeps one sum
 * per thread: its memory does not grow with the rows.
 */
export async function rowHashWithin(
  connection: DuckDBConnection,
  table: Table,
  files: readonly string[],
  bounds: TimeBounds = {},
): Promise<RowHash> {
  if (files.length === 0) return { rows: 0n, hash: 0n };
  const sql = `${rowHashSql(canonicalLineSql(table), parquetRows(files))}${whereSql(bounds)}`;
  const reader = await connection.runAndReadAll(sql);
  const [[rows, hash]] = reader.getRows() as [[bigint, bigint]];
  return { rows, hash };
}
