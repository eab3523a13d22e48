import type { DuckDBConnection } from "@duckdb/node-api";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { identifier } from "../../duckdb/sql.ts";
import { CutStream, countedStream, type RowChunk } from "../../duckdb/whole-stream.ts";
import { RunvaultError } from "../../model/error.ts";
import { extraName, hasExtraColumn, storedColumns } from "../../model/profile/extra-column.ts";
import type { Table } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { Limit } from "../query/limit.ts";
import { type OpenViews, openViews, type ViewOptions } from "../query/open-views.ts";
import type { ResultColumn } from "../query/query.ts";
import { noRowsSql, type QueryArchive } from "../query/query-views.ts";
import type { Shortfall } from "../shortfall.ts";
import { tradeTableNames } from "../trades/trade-tables.ts";
import { exportHint } from "./export-file.ts";
import { columnsSql, type ExportSelection, selectionSql } from "./export-selection.ts";
import { type LinkedRuns, linkedRows, requireLinked } from "./linked-rows.ts";

export interface SessionOptions extends ViewOptions {
  /** The tables to export; others are ignored. */
  readonly tables: readonly Table[];
  readonly selection: ExportSelection;
}

/** One state of an archive, opened for export. All SQL of exports is in this file. */
export class ExportSession implements AsyncDisposable {
  readonly #views: OpenViews;
  readonly #tables: readonly Table[];
  readonly #archive: QueryArchive;
  readonly #signal: AbortSignal | undefined;
  readonly selection: ExportSelection;

  private constructor(views: OpenViews, archive: QueryArchive, options: SessionOptions) {
    this.#views = views;
    this.#archive = archive;
    this.#tables = options.tables;
    this.#signal = options.signal;
    this.selection = options.selection;
  }

  /** Throws `archive_damaged` if a file of the tables is missing or differs from the committed one. */
  static async open(archive: QueryArchive, options: SessionOptions): Promise<ExportSession> {
    const views = await openViews(archive, options);
    try {
      await views.show(
        options.tables.map(({ name }) => name),
        options.signal,
      );
      return new ExportSession(views, archive, options);
    } catch (error) {
      const reason = options.signal?.aborted ? options.signal.reason : await asExportError(error, views);
      await views[Symbol.asyncDispose]();
      throw reason;
    }
  }

  get manifests(): readonly Manifest[] {
    return this.#views.manifests;
  }

  /** Where the tables show less than all. */
  get shortfall(): Shortfall {
    return this.#views.shortfall(this.#tables.map(({ name }) => name));
  }

  /** The runs that have files of a table, in the order of its rows. */
  runsOf({ name }: Table): readonly RunRef[] {
    return this.#views.runsOf(name);
  }

  /** Limits a table to the rows of one run. */
  async narrow(table: Table, run: RunRef): Promise<void> {
    await this.work(() => this.#views.showOnly(table.name, run));
  }

  /** Creates `round_trips`, `matches` and `positions`, and the instruments, from every row of the tables. */
  async makeTradeTables(instruments: InstrumentsFile | null): Promise<void> {
    const { writeTradeTables } = await import("../trades/write-trade-tables.ts");
    const { writeAllInstrumentValues } = await import("../instruments/write-instrument-values.ts");
    const signal = this.#signal;
    await this.work(async () => {
      if (instruments !== null) await writeAllInstrumentValues(this.#views, instruments, signal);
      await writeTradeTables(this.#views, this.#archive.exactTypes, tradeTableNames, { instruments, signal });
    });
  }

  /** A table with all its columns in the archive, and SQL for the text of `extra` if that is one of them. */
  storedAs(table: Table): { readonly stored: Table; readonly extraSql: string | undefined } {
    const types = this.#archive.exactTypes(table.name);
    return {
      stored: { ...table, columns: storedColumns(table, types) },
      extraSql: hasExtraColumn(types) ? identifier(extraName) : undefined,
    };
  }

  /**
   * The chosen rows of a table, in key order: files come by run and time, each holds its rows in that order, and DuckDB
   * keeps it. `list` is the SELECT list; every column unless it is given.
   */
  rowsSql(table: Table, list = columnsSql(table, this.selection.decimals)): string {
    return `SELECT ${list} FROM memory.main.${identifier(table.name)}${selectionSql(table, this.selection)}`;
  }

  /**
   * The same rows from `tables/`, as they are when they are read. Throws `incomplete` and `archive_damaged` if its
   * current rows differ.
   */
  async linkedRowsSql(table: Table, runs: LinkedRuns): Promise<string> {
    const rows = linkedRows(this.#archive, this.manifests, table, runs);
    if (rows !== null) {
      await this.work((connection) => requireLinked(connection, this.#archive, this.manifests, table, rows));
    }
    const { stored } = this.storedAs(table);
    const list = stored.columns.map(({ name }) => identifier(name)).join(", ");
    const relation =
      rows === null ? noRowsSql(table, this.#archive.exactTypes(table.name)) : `SELECT ${list} FROM ${rows}`;
    const columns = columnsSql(table, this.selection.decimals);
    return `SELECT ${columns} FROM (${relation})${selectionSql(table, this.selection)}`;
  }

  /** Name and type of a SELECT's columns. */
  async columns(sql: string): Promise<ResultColumn[]> {
    return await this.work(async (connection) => {
      const prepared = await connection.prepare(sql);
      return Array.from({ length: prepared.columnCount }, (_, index) => ({
        name: prepared.columnName(index),
        type: prepared.columnType(index),
      }));
    });
  }

  /** The first row of an answer. */
  async firstRow(sql: string): Promise<readonly unknown[]> {
    return await this.work(async (connection) => (await connection.runAndReadAll(sql)).getRows()[0] ?? []);
  }

  /** Streams a SELECT in bounded memory. Ends only when it is whole: DuckDB counts its rows first. */
  async *stream(sql: string): AsyncGenerator<RowChunk> {
    const [rows] = await this.firstRow(`SELECT count(*) FROM (${sql})`);
    const { connection } = this.#views;
    using limit = new Limit(connection, undefined, this.#signal);
    try {
      yield* countedStream(await connection.stream(sql), Number(rows));
    } catch (error) {
      const known = limit.reason();
      if (known !== undefined) throw known;
      throw error instanceof CutStream
        ? await this.#reasonOfCut(sql)
        : await asExportError(error, this.#views);
    }
  }

  /** Runs work in DuckDB. Throws its errors as ours, or the signal's reason if it aborts. */
  async work<T>(body: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    const { connection } = this.#views;
    using limit = new Limit(connection, undefined, this.#signal);
    try {
      return await body(connection);
    } catch (error) {
      throw limit.reason() ?? (await asExportError(error, this.#views));
    }
  }

  /** Runs a SELECT that ended early once more, reduced to one value that needs every cell, to get DuckDB's reason. */
  async #reasonOfCut(sql: string): Promise<RunvaultError> {
    try {
      await this.work(async (connection) => await connection.run(`SELECT max(hash(q)) FROM (\n${sql}\n) q`));
    } catch (error) {
      return RunvaultError.from(error);
    }
    return new RunvaultError("internal", "the rows ended early, and DuckDB gave no reason");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#views[Symbol.asyncDispose]();
  }
}

/** Like a query's errors, but a disk that cannot be written is not damage of the archive. */
async function asExportError(error: unknown, views: OpenViews): Promise<RunvaultError> {
  const { code } = duckDBError(error, "");
  const message = error instanceof Error ? error.message : String(error);
  if (code.startsWith("storage_") && !views.files.some((file) => message.includes(file))) {
    return new RunvaultError(code, message, { cause: error, ...exportHint });
  }
  const known = await views.errorOf(error);
  return known.code.startsWith("storage_")
    ? new RunvaultError(known.code, known.message, { cause: error, ...exportHint })
    : known;
}
