import type { Archive } from "../../archive/archive.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { openDuckDB } from "../../duckdb/open-duckdb.ts";
import { identifier, parquetRows } from "../../duckdb/sql.ts";
import type { ChangedColumn } from "./widened-types.ts";

/** Whether a column's new type can hold every value in the archive's Parquet exactly. No job may be running. */
export async function fitsEveryValue(
  archive: Archive,
  { table, column, type }: ChangedColumn,
): Promise<boolean> {
  const { layout, store } = archive;
  await using duckdb = await openDuckDB({ threads: 1 });
  const name = identifier(column);
  for (const manifest of await archive.manifests()) {
    const held = manifest.tables[table];
    for (const { parquet, exactTypes } of held === undefined ? [] : holdingsOf(held)) {
      // one at a time: read together, files of different types would be read as one type
      for (const { file } of parquet) {
        const path = await store.localFile(layout.committedKey(manifest, "data", file));
        const there = `TRY_CAST(TRY_CAST(${name} AS ${type}) AS ${exactTypes[column]})`;
        const sql = `SELECT 1 FROM ${parquetRows([path])} WHERE ${name} IS DISTINCT FROM ${there} LIMIT 1`;
        try {
          if ((await duckdb.connection.runAndReadAll(sql)).currentRowCount > 0) return false;
        } catch (thrown) {
          throw duckDBError(thrown, "the column's values could not be read").at({ table, file: path });
        }
      }
    }
  }
  return true;
}
