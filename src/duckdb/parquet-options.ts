import type { Table } from "../model/profile/table.ts";

/** Rows in a row group. Smaller than DuckDB's default, for its writer holds one such group a thread in memory. */
const rowGroupRows = 61_440;

/**
 * Options of a COPY to Parquet: as archives have it, in small row groups. `dictionaryLimit` is the most values that a
 * column's dictionary may have; 0 is for columns with doubles, for DuckDB's dictionaries take -0 for 0.
 */
export function parquetOptions(dictionaryLimit: number): string {
  return `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE ${rowGroupRows}, DICTIONARY_SIZE_LIMIT ${dictionaryLimit}, WRITE_BLOOM_FILTER false, USE_TMP_FILE false`;
}

/**
 * Most values of a column's dictionary. Names repeat and are few; ids and prices are many, and gathering them only to
 * give them up again takes as long as parsing them.
 */
export const usualDictionaryLimit = 256;

/** That of a table's columns. */
export function dictionaryLimit({ columns }: Table): number {
  return columns.some(({ kind }) => kind === "double") ? 0 : usualDictionaryLimit;
}
