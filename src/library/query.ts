import type { Table } from "apache-arrow";
import { openQuery as openQueryOver, type QueryOptions } from "../analytics/query/query.ts";
import { jsonCell, textCell } from "../analytics/render/cell.ts";
import type { Shortfall } from "../analytics/shortfall.ts";
import { openArchive } from "../archive/archive.ts";

export type { Shortfall } from "../analytics/shortfall.ts";
export { RunvaultError } from "../model/error.ts";

/** Read-only SQL over an archive's tables. One statement at a time. */
export interface ArchiveQuery extends AsyncDisposable {
  /**
   * The rows of a SELECT as objects, streamed while DuckDB computes them. Integers of 64 bits and more are bigints,
   * decimals are strings with all digits of their type, times are RFC 3339 strings; NULL is null. Throws `query_invalid`
   * with DuckDB's message, and `archive_damaged` if a file of a table that the query names is not what was committed.
   */
  rows(sql: string, signal?: AbortSignal): AsyncGenerator<Record<string, unknown>, Shortfall | null>;
  /** The whole answer as an Arrow table, with exact decimals and nanoseconds. Throws as `rows` does. */
  arrow(sql: string, signal?: AbortSignal): Promise<Table>;
}

/** Opens an archive folder for queries, at the generation that is committed now. Throws `not_an_archive`. */
export async function openQuery(
  folder: string,
  options: Omit<QueryOptions, "parquetFile"> = {},
): Promise<ArchiveQuery> {
  const query = await openQueryOver(await openArchive(folder), options);
  return {
    async *rows(sql, signal) {
      const result = await query.run(sql, signal);
      const names = result.columns.map(({ name }) => name);
      for await (const batch of result.batches()) {
        for (const row of batch) yield Object.fromEntries(names.map((name, at) => [name, plain(row[at]!)]));
      }
      return result.shortfall;
    },
    async arrow(sql, signal) {
      const result = await query.run(sql, signal);
      const [{ tableFromIPC }, { arrowAnswer }] = await loadArrow();
      const pieces: Uint8Array[] = [];
      for await (const piece of arrowAnswer(result, "stream")) pieces.push(piece.slice());
      return tableFromIPC(Buffer.concat(pieces));
    },
    [Symbol.asyncDispose]: () => query[Symbol.asyncDispose](),
  };
}

/** Loaded only when needed: Arrow is the largest of the libraries. */
async function loadArrow() {
  return await Promise.all([import("apache-arrow"), import("../analytics/arrow/arrow-ipc.ts")]);
}

function plain(value: Parameters<typeof textCell>[0]): unknown {
  if (value === null || typeof value !== "object") return value;
  const json = jsonCell(value);
  return json.startsWith('"') ? textCell(value) : JSON.parse(json);
}
