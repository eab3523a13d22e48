import { canonicalLineSql } from "./canonical-sql.ts";
import type { ParquetReading, RowPiece } from "./parquet-reading.ts";
import { RawStrings } from "./raw-vector.ts";

/**
 * The canonical lines of a reading, each with its line end, and with `extra` after the columns, as in segments, if the
 * files have it. Ends only once all have come; throws like the reading.
 */
export async function* parquetLines(reading: ParquetReading): AsyncGenerator<RowPiece> {
  // lines only of chosen rows: a limit must not render them all
  const line = canonicalLineSql(reading.table, "", "\n", reading.extraSql);
  const sql = `SELECT ${line} AS line FROM (${reading.rowsSql()})`;
  for await (const { chunk, rows } of reading.stream(sql)) {
    yield { bytes: new RawStrings(chunk, 0).joined(rows), rows };
  }
}
