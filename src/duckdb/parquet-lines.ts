import { canonicalLineSql } from "./canonical-sql.ts";
import type { ParquetReading, RowPiece } from "./parquet-reading.ts";
import { RawStrings } from "./raw-vector.ts";

/**
 * The canonical lines of a reading, each with its end; behind the columns `extra`, as in segments, where the files have it. Ends
 * only when all of them came; throws as the reading does.
 */
export async function* parquetLines(reading: ParquetReading): AsyncGenerator<RowPiece> {
  // lines of the rows that were chosen: a limit must not have them made of all
  const line = canonicalLineSql(reading.table, "", "\n", reading.extraSql);
  const sql = `SELECT ${line} AS line FROM (${reading.rowsSql()})`;
  for await (const { chunk, rows } of reading.stream(sql)) {
    yield { bytes: new RawStrings(chunk, 0).joined(rows), rows };
  }
}
