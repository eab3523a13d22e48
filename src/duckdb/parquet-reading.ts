import type { DuckDBConnection, DuckDBType } from "@duckdb/node-api";
import { RunvaultError } from "../model/error.ts";
import type { ExactTypes } from "../model/profile/exact-types.ts";
import { extraName, hasExtraColumn, storedColumns } from "../model/profile/extra-column.ts";
import type { FilterValue } from "../model/profile/row-request.ts";
import type { Table } from "../model/profile/table.ts";
import type { TimeBounds } from "../model/time.ts";
import { requestCancelled } from "../model/usual-errors.ts";
import { columnType } from "./column-type.ts";
import { duckDBError } from "./duckdb-error.ts";
import type { OpenDuckDB } from "./open-duckdb.ts";
import { identifier, parquetRows } from "./sql.ts";
import { whereSql } from "./where-sql.ts";
import { CutStream, countedStream, type RowChunk } from "./whole-stream.ts";

export interface ParquetQuery {
  readonly table: Table;
  /** Parquet files of one run, in the order of their rows; there may be none. */
  readonly files: readonly string[];
  /** DuckDB types of the exact columns in the files. */
  readonly exactTypes: ExactTypes;
  readonly bounds: TimeBounds;
  readonly filters: readonly FilterValue[];
  readonly limit: number | undefined;
  /** Whether files overlap in time. Default: each begins after the previous one ends. */
  readonly isToSort?: boolean;
  readonly signal: AbortSignal | undefined;
  /** Called with all of DuckDB's work: until it is done, DuckDB must not be closed. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
}

/** Bytes of an answer, and their number of rows. */
export interface RowPiece {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/** Writes the rows of a reading in some form. */
export type ParquetForm = (reading: ParquetReading) => AsyncIterable<RowPiece>;

/**
 * The rows of Parquet files within bounds and filters, in the order of the files, while this is open. Everything throws
 * `interrupted` when the signal aborts, `archive_damaged` if a file cannot be read, `storage_…` for the disk.
 */
export class ParquetReading implements Disposable {
  readonly table: Table;
  readonly #query: ParquetQuery;
  readonly #connection: DuckDBConnection;
  #rows: number | undefined;
  readonly #onAbort = () => this.#connection.interrupt();

  private constructor(connection: DuckDBConnection, query: ParquetQuery) {
    this.table = query.table;
    this.#query = query;
    this.#connection = connection;
    query.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  static async open(duckdb: OpenDuckDB, query: ParquetQuery): Promise<ParquetReading> {
    return new ParquetReading(await query.track(duckdb.instance.connect()), query);
  }

  /** The table with all columns of the files, in order: the contract's, and `extra` if present. */
  get stored(): Table {
    const { table, exactTypes } = this.#query;
    return { ...table, columns: storedColumns(table, exactTypes) };
  }

  /** A SELECT of the rows; `list` defaults to every column in the table's order. */
  rowsSql(list?: string): string {
    const { table, files, exactTypes, bounds, filters, limit, isToSort } = this.#query;
    const columns = list ?? this.stored.columns.map(({ name }) => identifier(name)).join(", ");
    if (files.length === 0) {
      const nulls = storedColumns(table, exactTypes).map(
        (column) => `NULL::${columnType(column, exactTypes)} AS ${identifier(column.name)}`,
      );
      return `SELECT ${columns} FROM (SELECT ${nulls.join(", ")}) WHERE false`;
    }
    const first = limit === undefined ? "" : ` LIMIT ${limit}`;
    const sorted = isToSort ? " ORDER BY ts_event, seq" : "";
    return `SELECT ${columns} FROM ${parquetRows(files)}${whereSql(bounds, filters)}${sorted}${first}`;
  }

  /** SQL for the text of the member `extra`; undefined if the files have no such column. */
  get extraSql(): string | undefined {
    return hasExtraColumn(this.#query.exactTypes) ? identifier(extraName) : undefined;
  }

  /** Names and types of a SELECT's columns. */
  async columns(sql: string): Promise<{ readonly name: string; readonly type: DuckDBType }[]> {
    const prepared = await this.#work(() => this.#connection.prepare(sql));
    return Array.from({ length: prepared.columnCount }, (_, index) => ({
      name: prepared.columnName(index),
      type: prepared.columnType(index),
    }));
  }

  /** The first row of an answer. */
  async firstRow(sql: string): Promise<readonly unknown[]> {
    const result = await this.#work(() => this.#connection.runAndReadAll(sql));
    return result.getRows()[0] ?? [];
  }

  /** The number of rows; DuckDB reads only the columns of bounds and filters. */
  async rows(): Promise<number> {
    this.#rows ??= Number((await this.firstRow(`SELECT count(*) FROM (${this.rowsSql()})`))[0]);
    return this.#rows;
  }

  /** Streams a SELECT with one row for each of the reading's, in bounded memory. Ends only when complete. */
  async *stream(sql: string): AsyncGenerator<RowChunk> {
    const { signal, track } = this.#query;
    const rows = await this.rows();
    try {
      signal?.throwIfAborted();
      const result = await track(this.#connection.stream(sql));
      for await (const chunk of countedStream(result, rows, track)) {
        yield chunk;
        signal?.throwIfAborted();
      }
    } catch (thrown) {
      throw thrown instanceof CutStream ? await this.#reasonOfCut(sql) : this.#failure(thrown);
    }
  }

  [Symbol.dispose](): void {
    this.#query.signal?.removeEventListener("abort", this.#onAbort);
    // otherwise a reader that leaves early leaves a query that keeps filling its buffers
    this.#connection.interrupt();
    this.#connection.closeSync();
  }

  async #work<T>(body: () => Promise<T>): Promise<T> {
    const { signal, track } = this.#query;
    try {
      signal?.throwIfAborted();
      return await track(body());
    } catch (thrown) {
      throw this.#failure(thrown);
    }
  }

  /** Runs a cut query again, reduced to one value that needs every cell, because only then does DuckDB say why. */
  async #reasonOfCut(sql: string): Promise<RunvaultError> {
    try {
      await this.#work(() => this.#connection.run(`SELECT max(hash(q)) FROM (\n${sql}\n) q`));
    } catch (thrown) {
      return RunvaultError.from(thrown);
    }
    return new RunvaultError(
      "history_query_failed",
      "reading Parquet ended early, and DuckDB gave no reason",
    );
  }

  #failure(thrown: unknown): RunvaultError {
    const { signal } = this.#query;
    if (signal?.aborted) return requestCancelled(signal.reason);
    const error = duckDBError(thrown, "Parquet cannot be read");
    const text = thrown instanceof Error ? thrown.message : "";
    // anything but disk and memory errors is the file's fault
    const isOurs = /^(Out of Memory|INTERNAL)|Too many open files/i.test(text);
    const damaged = !isOurs && (error.code === "storage_failed" || error.code === "internal");
    if (thrown instanceof RunvaultError) return thrown;
    if (!damaged) {
      if (error.code !== "internal") return error;
      return new RunvaultError("history_query_failed", "DuckDB could not compute the query", {
        cause: thrown,
      });
    }
    // DuckDB's message, which has the file's full path, becomes the cause
    return new RunvaultError("archive_damaged", "a Parquet file cannot be read", {
      cause: thrown,
      hint: "Run `runvault verify` to see which file it is; `runvault maintain rebuild` rebuilds Parquet from segments.",
    });
  }
}
