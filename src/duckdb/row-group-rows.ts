/** Rows in a row group. Smaller than DuckDB's default, for its writer holds one such group a thread in memory. */
export const rowGroupRows = 61_440;
