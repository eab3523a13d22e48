import type { Table } from "../model/profile/table.ts";

/** Rows in a row group. Fewer than DuckDB's default, because its writer holds one group per thread in memory. */
const rowGroupRows = 61_440;

/**
 * Options of a COPY to Parquet, in small row groups as in archives. `dictionaryLimit` is the most values in a column's
 * dictionary; 0 for columns with doubles, because DuckDB's dictionaries confuse -0 and 0.
 */
export function parquetOptions(dictionaryLimit: number): string {
  return `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE ${rowGroupRows}, DICTIONARY_SIZE_LIMIT ${dictionaryLimit}, WRITE_BLOOM_FILTER false, USE_TMP_FILE false`;
}

/**
 * Most values in a column's dictionary. Names repeat and are few; ids and prices are many, and collecting them in vain
 * takes as long as parsing them.
 */
export const usualDictionaryLimit = 256;

/** The limit for a table's columns. */
export function dictionaryLimit({ columns }: Table): number {
  return columns.some(({ kind }) => kind === "double") ? 0 : usualDictionaryLimit;
}
