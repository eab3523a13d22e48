import type { ParquetForm, ParquetReading, RowPiece } from "../../duckdb/parquet-reading.ts";
import type { RowChunk } from "../../duckdb/whole-stream.ts";
import { arrowBatches, arrowSchema } from "../arrow/arrow-batch.ts";
import { arrowIpc } from "../arrow/arrow-ipc.ts";
import { longestStringsSql, stringPieces } from "../arrow/string-pieces.ts";
import { csvHeader, csvLineSql, lineText } from "./export-lines.ts";

/** The formats besides NDJSON in which an archive's rows can be served: the same bytes as from `export`. */
export const parquetForms = {
  "arrow-stream": (reading) => counted((chunks) => arrowPieces(reading, chunks)),
  csv: (reading) => counted((chunks) => csvPieces(reading, chunks)),
} satisfies Record<string, ParquetForm>;

/** Passes chunks of rows on, and counts their rows. */
type Through = (chunks: AsyncIterable<RowChunk>) => AsyncIterable<RowChunk>;

async function* arrowPieces(reading: ParquetReading, through: Through): AsyncGenerator<Uint8Array> {
  const table = reading.stored;
  const sql = reading.rowsSql();
  const columns = await reading.columns(sql);
  const longest = await reading.firstRow(longestStringsSql(table, `SELECT * FROM (${sql})`));
  const { list, spans } = stringPieces(columns, longest);
  const chunks = through(reading.stream(`SELECT ${list} FROM (${sql})`));
  yield* arrowIpc("stream", arrowBatches(columns, arrowSchema(columns), spans, chunks));
}

async function* csvPieces(reading: ParquetReading, through: Through): AsyncGenerator<Uint8Array> {
  const table = reading.stored;
  const lines = `SELECT ${csvLineSql(table, "exact")} AS line FROM (${reading.rowsSql()})`;
  yield* lineText(csvHeader(table), through(reading.stream(lines)));
}

/** Pieces, each with the number of rows read since the previous one. */
async function* counted(pieces: (through: Through) => AsyncIterable<Uint8Array>): AsyncGenerator<RowPiece> {
  let rows = 0;
  const through: Through = async function* (chunks) {
    for await (const chunk of chunks) {
      rows += chunk.rows;
      yield chunk;
    }
  };
  for await (const bytes of pieces(through)) {
    yield { bytes, rows };
    rows = 0;
  }
}
