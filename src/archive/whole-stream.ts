import type { DuckDBDataChunk, DuckDBResult } from "@duckdb/node-api";
import { RunvaultError } from "../model/error.ts";
import { isValid, rawVector } from "./raw-vector.ts";

/** Rows as DuckDB holds them. */
export interface RowChunk {
  readonly chunk: DuckDBDataChunk;
  /** How many of the chunk's rows count, from the first. */
  readonly rows: number;
}

/** A stream that ended before its last row. Why, only a query that is not streamed can tell. */
export class CutStream extends Error {
  readonly rows: number;

  constructor(rows: number) {
    super(`the answer was cut after ${rows} rows`);
    this.rows = rows;
  }
}

/**
 * Streams a SELECT. A streaming result of the DuckDB client that fails or is interrupted ends as if it were whole. So
 * the rows are followed by a last one that says so, in a column behind those asked for; an answer without it was cut,
 * and throws CutStream. `select` must be safe inside parentheses. `track` is told of what DuckDB is working on.
 */
export async function* wholeStream(
  open: (sql: string) => Promise<DuckDBResult>,
  select: string,
  columns: number,
  track: <T>(work: Promise<T>) => Promise<T> = (work) => work,
): AsyncGenerator<RowChunk> {
  const nulls = Array.from({ length: columns }, () => "NULL").join(", ");
  const marked = `SELECT *, NULL::BOOLEAN FROM (\n${select}\n) UNION ALL SELECT ${nulls}, true`;
  const result = await track(open(marked));
  // the next chunk is made while this one is read
  let next = track(result.fetchChunk());
  try {
    let ended = false;
    let total = 0;
    for (;;) {
      const chunk = await next;
      if (chunk === null || chunk.rowCount === 0) break;
      next = track(result.fetchChunk());
      if (ended) throw new RunvaultError("internal", "rows came after the last row of the answer");
      const marks = chunk.getColumnVector(columns);
      let rows = chunk.rowCount;
      if (marks.getItem(rows - 1) === true) {
        ended = true;
        rows--;
      }
      const { validity } = rawVector(chunk, columns, 1);
      for (let row = 0; row < rows; row++) {
        if (isValid(validity, row))
          throw new RunvaultError("internal", "the last row of the answer came early");
      }
      total += rows;
      if (rows > 0) yield { chunk, rows };
    }
    if (!ended) throw new CutStream(total);
  } finally {
    // DuckDB must not be closed, nor asked anything else, while it still works
    await next.catch(() => {});
  }
}
