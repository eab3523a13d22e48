import type { DuckDBDataChunk, DuckDBResult } from "@duckdb/node-api";
import { RunvaultError } from "../model/error.ts";
import { isValid, rawVector } from "./raw-vector.ts";

/** Rows as DuckDB holds them. */
export interface RowChunk {
  readonly chunk: DuckDBDataChunk;
  /** How many of the chunk's rows count, from the first. */
  readonly rows: number;
}

/** A stream that ended before its last row. Only an unstreamed query can find out why. */
export class CutStream extends Error {
  readonly rows: number;

  constructor(rows: number) {
    super(`the answer was cut after ${rows} rows`);
    this.rows = rows;
  }
}

/** Called with each piece of DuckDB's work. */
export type Track = <T>(work: Promise<T>) => Promise<T>;

const untracked: Track = (work) => work;

/**
 * The chunks of a streaming result with a known number of rows. A streaming result of DuckDB's client that fails or is
 * interrupted looks complete: fewer rows throw CutStream.
 */
export async function* countedStream(
  result: DuckDBResult,
  rows: number,
  track: Track = untracked,
): AsyncGenerator<RowChunk> {
  let total = 0;
  for await (const chunk of chunksOf(result, track)) {
    total += chunk.rowCount;
    if (total > rows) throw new RunvaultError("internal", `rows came after the ${rows} of the answer`);
    yield { chunk, rows: chunk.rowCount };
  }
  if (total < rows) throw new CutStream(total);
}

/**
 * Streams a SELECT with an unknown number of rows. A marked last row is appended, in an extra column; an answer without
 * it was cut, and throws CutStream. `select` must be safe inside parentheses. Twice as slow as counted rows, because
 * DuckDB copies every chunk to append the last row.
 */
export async function* markedStream(
  open: (sql: string) => Promise<DuckDBResult>,
  select: string,
  columns: number,
): AsyncGenerator<RowChunk> {
  const nulls = Array.from({ length: columns }, () => "NULL").join(", ");
  const result = await open(`SELECT *, NULL::BOOLEAN FROM (\n${select}\n) UNION ALL SELECT ${nulls}, true`);
  let ended = false;
  let total = 0;
  for await (const chunk of chunksOf(result, untracked)) {
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
}

/** Non-empty chunks; the next one is made while one is read. */
async function* chunksOf(result: DuckDBResult, track: Track): AsyncGenerator<DuckDBDataChunk> {
  let next = track(result.fetchChunk());
  try {
    for (;;) {
      const chunk = await next;
      if (chunk === null || chunk.rowCount === 0) return;
      next = track(result.fetchChunk());
      yield chunk;
    }
  } finally {
    // DuckDB must not be used or closed while it still works
    await next.catch(() => {});
  }
}
