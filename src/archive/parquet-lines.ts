import type { DuckDBConnection } from "@duckdb/node-api";
import { RunvaultError } from "../model/error.ts";
import type { FilterName, Table } from "../model/table.ts";
import type { TimeBounds } from "../model/time.ts";
import { canonicalLineSql } from "./canonical-sql.ts";
import { timestampMax, timestampMin } from "./convert-types.ts";
import { duckDBError, type OpenDuckDB } from "./duckdb.ts";
import { identifier, literal, parquetRows } from "./sql.ts";

export interface LineQuery {
  readonly table: Table;
  /** Parquet files of one run, in the order of their rows. */
  readonly files: readonly string[];
  readonly bounds: TimeBounds;
  readonly filters: readonly (readonly [FilterName, string])[];
  readonly limit: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A chunk of lines, each with its end, and how many they are. */
export interface Lines {
  readonly text: Buffer;
  readonly rows: number;
}

/**
 * The canonical lines of the rows that Parquet files hold within the bounds and filters, in the order of the files.
 * Ends only when all of them came. Throws `interrupted` when the signal aborts, `archive_damaged` where a file cannot
 * be read, `storage_…` for the disk.
 */
export async function* parquetLines(duckdb: OpenDuckDB, query: LineQuery): AsyncGenerator<Lines> {
  const { signal } = query;
  const connection = await duckdb.instance.connect();
  const onAbort = () => connection.interrupt();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const rows = rowsSql(query);
    // a stream of DuckDB's client that fails ends as if it were whole, so a last row says that it is
    const sql = `SELECT ${canonicalLineSql(query.table)} FROM (${rows}) UNION ALL SELECT NULL`;
    let ended = false;
    try {
      const result = await connection.stream(sql);
      for (;;) {
        signal?.throwIfAborted();
        const chunk = await result.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) break;
        if (ended) throw new RunvaultError("internal", "rows came after the last row of the answer");
        const lines = chunk.getColumnValues(0) as (string | null)[];
        if (lines.at(-1) === null) {
          ended = true;
          lines.pop();
        }
        if (lines.length === 0) continue;
        lines.push("");
        yield { text: Buffer.from(lines.join("\n")), rows: lines.length - 1 };
      }
    } catch (thrown) {
      throw failure(thrown, signal);
    }
    if (!ended) throw await reasonOfCut(connection, rows, signal);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // a reader that leaves early leaves a query that goes on filling its buffers
    connection.interrupt();
    connection.closeSync();
  }
}

function rowsSql({ table, files, bounds, filters, limit }: LineQuery): string {
  const tests = [
    ...boundsSql(bounds),
    ...filters.map(([name, value]) => `${identifier(name)} = ${literal(value)}`),
  ];
  const where = tests.length === 0 ? "" : ` WHERE ${tests.join(" AND ")}`;
  const first = limit === undefined ? "" : ` LIMIT ${limit}`;
  const columns = table.columns.map(({ name }) => identifier(name)).join(", ");
  return `SELECT ${columns} FROM ${parquetRows(files)}${where}${first}`;
}

/** Bounds outside what a timestamp can be are open, or leave nothing. */
function boundsSql({ from, to }: TimeBounds): string[] {
  const tests: string[] = [];
  if (from !== undefined && from > timestampMin) {
    tests.push(from > timestampMax ? "false" : `ts_event >= make_timestamp_ns(${from})`);
  }
  if (to !== undefined && to <= timestampMax) {
    tests.push(to < timestampMin ? "false" : `ts_event < make_timestamp_ns(${to})`);
  }
  return tests;
}

/** Runs a cut query once more, reduced to one value that needs every cell, because only then DuckDB says why. */
async function reasonOfCut(
  connection: DuckDBConnection,
  rows: string,
  signal: AbortSignal | undefined,
): Promise<RunvaultError> {
  if (signal?.aborted) return failure(signal.reason, signal);
  try {
    await connection.run(`SELECT max(hash(q)) FROM (${rows}) q`);
  } catch (thrown) {
    return failure(thrown, signal);
  }
  return new RunvaultError("history_query_failed", "reading Parquet ended early, and DuckDB gave no reason");
}

function failure(thrown: unknown, signal: AbortSignal | undefined): RunvaultError {
  if (signal?.aborted) {
    return new RunvaultError("interrupted", "the request was given up", { cause: signal.reason });
  }
  const error = duckDBError(thrown, "Parquet cannot be read");
  const text = thrown instanceof Error ? thrown.message : "";
  // what is neither the disk's nor the memory's fault is the file's
  const damaged =
    error.code === "storage_failed" ||
    (error.code === "internal" && !/^(Out of Memory|INTERNAL)/i.test(text));
  if (!damaged || thrown instanceof RunvaultError) return error;
  return new RunvaultError("archive_damaged", error.message, {
    cause: thrown,
    hint: "See which file it is with `runvault verify`; `runvault rebuild` makes Parquet anew from segments.",
  });
}
