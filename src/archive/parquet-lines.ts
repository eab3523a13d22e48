import { canonicalLineSql } from "./canonical-sql.ts";
import type { ParquetReading, RowPiece } from "./parquet-reading.ts";

/** The canonical lines of a reading, each with its end. Ends only when all of them came; throws as the reading does. */
export async function* parquetLines(reading: ParquetReading): AsyncGenerator<RowPiece> {
  const { table } = reading;
  // lines of the rows that were chosen: a limit must not have them made of all
  const sql = `SELECT ${canonicalLineSql(table)} AS line FROM (${reading.rowsSql()})`;
  for await (const { chunk, rows } of reading.stream(sql, 1)) {
    const lines = chunk.getColumnValues(0) as string[];
    lines.length = rows;
    lines.push("");
    yield { bytes: Buffer.from(lines.join("\n")), rows };
  }
}
