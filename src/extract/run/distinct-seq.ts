import type { DuckDBConnection } from "@duckdb/node-api";
import { parquetRows } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";

/**
 * Throws `duplicate_row` if two rows in a table's Parquet files have the same seq: a row that came in two windows has
 * different neighbours in each, so the order of keys does not show it. Where seq is numbered here, from 0 in each
 * timestamp, it has to be unique within a timestamp.
 */
export async function requireDistinctSeq(
  connection: DuckDBConnection,
  table: Table,
  files: readonly string[],
  isNumberedHere = false,
): Promise<void> {
  if (files.length === 0) return;
  const rows = parquetRows(files);
  const key = isNumberedHere ? "ts_event, seq" : "seq";
  const sql = `SELECT seq, count(*) FROM ${rows} GROUP BY ${key} HAVING count(*) > 1 ORDER BY seq LIMIT 1`;
  const [doubled] = (await connection.runAndReadAll(sql)).getRows() as [bigint, bigint][];
  if (doubled === undefined) return;
  throw new RunvaultError("duplicate_row", `${doubled[1]} rows have the seq ${doubled[0]}`, {
    place: { table: table.name },
    hint: "Run the same command again: rows moved at the gateway while they were fetched.",
  });
}
