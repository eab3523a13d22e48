import type { DuckDBPreparedStatement, DuckDBType, DuckDBValue } from "@duckdb/node-api";
import { CutStream, markedStream, type RowChunk } from "../../duckdb/whole-stream.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import { countText } from "../../model/text/plural.ts";
import { parquetCopySql } from "../export/parquet-copy.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import type { Shortfall } from "../shortfall.ts";
import { type MacroName, needInstruments, tablesOfMacros } from "../sql/macro-names.ts";
import type { MacroFile } from "../sql/macros.ts";
import type { TradeTableName } from "../trades/trade-tables.ts";
import { tradedTables } from "../trades/traded-tables.ts";
import { Limit } from "./limit.ts";
import { type OpenViews, openViews } from "./open-views.ts";
import { inOwnLines } from "./query-error.ts";
import type { QueryArchive } from "./query-views.ts";
import { isKind, type ReadStatement, readStatement } from "./statement.ts";

export interface QueryOptions {
  /** Show the latest attempts' rows, proven or not, instead of the proven ones; default false. */
  readonly allowIncomplete?: boolean;
  /** Memory DuckDB may use before it spills to the temporary folder, in MiB; default 1024. */
  readonly memoryLimitMb?: number;
  /** Longest time a query may run, reading its rows included, in milliseconds; default 300,000. */
  readonly timeoutMs?: number;
  /** Threads of DuckDB; default 4. A statement that calls a macro of the analytics has one: see `run`. */
  readonly threads?: number;
  /** The instruments file for trades, execution and factors; default: assumptions. */
  readonly instruments?: InstrumentsFile | null;
  /** A file that an answer may be written to as Parquet; the only one that this may write. */
  readonly parquetFile?: string | undefined;
  /** Ends the opening early. */
  readonly signal?: AbortSignal;
}

export interface ResultColumn {
  readonly name: string;
  readonly type: DuckDBType;
}

/** The rows of one answer, read once. */
export interface QueryResult {
  readonly columns: readonly ResultColumn[];
  /** Where the tables that the statement names show less than all; null if it names none. */
  readonly shortfall: Shortfall | null;
  /**
   * Rows in batches, as they are computed, in bounded memory. Ends only when the answer is complete; throws
   * `query_invalid` if the query fails, exceeds its time, or is aborted.
   */
  batches(): AsyncIterable<readonly (readonly DuckDBValue[])[]>;
  /** The same in DuckDB's form, without making objects. Their columns are the first of a chunk's. */
  chunks(): AsyncIterable<RowChunk>;
  /**
   * Writes the rows to a new Parquet file, which must be the one named at the opening. Returns their number.
   */
  writeParquet(file: string): Promise<number>;
  /** The rows that were read so far. */
  readonly rows: number;
}

/** Views over an archive's committed files, and SQL over them that can only read. */
export interface Query extends AsyncDisposable {
  /**
   * Runs one SELECT, or an EXPLAIN of one. Throws `query_invalid` with DuckDB's message, and `archive_damaged` if a
   * committed file of a table that it names is missing or not what was committed. One at a time. A statement that calls
   * a macro of the analytics runs in one thread: with more, sums of doubles would vary from run to run.
   */
  run(sql: string, signal?: AbortSignal): Promise<QueryResult>;
}

/**
 * Opens an in-memory DuckDB with the views of an archive, and locks it: no file but the committed ones, no
 * configuration, no extension. The views show the generation committed now, for as long as this is open.
 */
export async function openQuery(archive: QueryArchive, options: QueryOptions = {}): Promise<Query> {
  const { allowIncomplete = false, memoryLimitMb = 1024, timeoutMs = 300_000, threads = 4, signal } = options;
  const views = await openViews(archive, {
    readManifests: () => archive.manifests(),
    allowIncomplete,
    memoryLimitMb,
    threads,
    lockedButFor: options.parquetFile === undefined ? [] : [options.parquetFile],
    signal,
  });
  const instruments = options.instruments ?? null;
  return new LockedQuery(
    views,
    { timeoutMs, threads },
    {
      tradeTables: async (names, until) => {
        const { writeTradeTables } = await import("../trades/write-trade-tables.ts");
        await writeTradeTables(views, archive.exactTypes, names, { instruments, signal: until });
      },
      instruments: async (until) => {
        if (instruments === null) return;
        const { writeAllInstrumentValues } = await import("../instruments/write-instrument-values.ts");
        await writeAllInstrumentValues(views, instruments, until);
      },
    },
  );
}

/** Makes what a statement names besides the views of committed files. */
interface Made {
  readonly tradeTables: (names: readonly TradeTableName[], signal: AbortSignal) => Promise<void>;
  /** Writes the instruments for the macros, which must exist. */
  readonly instruments: (signal: AbortSignal) => Promise<void>;
}

class LockedQuery implements Query {
  readonly #views: OpenViews;
  readonly #timeoutMs: number;
  readonly #threads: number;
  readonly #make: Made;
  readonly #made = new Set<TradeTableName>();
  readonly #macroFiles = new Set<MacroFile>();
  #hasInstruments = false;
  /** How many DuckDB has now. */
  #threadsNow: number;

  constructor(
    views: OpenViews,
    { timeoutMs, threads }: { readonly timeoutMs: number; readonly threads: number },
    make: Made,
  ) {
    this.#views = views;
    this.#timeoutMs = timeoutMs;
    this.#threads = threads;
    this.#threadsNow = threads;
    this.#make = make;
  }

  async run(sql: string, signal?: AbortSignal): Promise<QueryResult> {
    const limit = new Limit(this.#views.connection, this.#timeoutMs, signal);
    try {
      const statement = await readStatement(this.#views.connection, sql);
      const tables = neededTables(statement);
      await this.#views.show(tables, limit.signal);
      const missing = statement.tradeTables.filter((name) => !this.#made.has(name));
      if (missing.length > 0) await this.#make.tradeTables(missing, limit.signal);
      for (const name of missing) this.#made.add(name);
      if (statement.macros.length > 0) await this.#makeMacros(statement.macros, limit.signal);
      await this.#useThreads(statement.macros.length > 0 ? 1 : this.#threads);
      const asked = await this.#prepare(statement.text, statement.kind);
      const columns = Array.from({ length: asked.columnCount }, (_, index) => ({
        name: asked.columnName(index),
        type: asked.columnType(index),
      }));
      const chunks =
        statement.kind === "explain"
          ? this.#whole(asked, limit)
          : this.#stream(statement, columns.length, limit);
      let rows = 0;
      const counted = countRows(chunks, (more) => {
        rows += more;
      });
      return {
        columns,
        shortfall: tables.length === 0 ? null : this.#views.shortfall(tables),
        chunks: () => counted,
        batches: () => batchesOf(counted, columns.length),
        writeParquet: async (file) => {
          rows = await this.#copy(statement, columns, file, limit);
          return rows;
        },
        get rows() {
          return rows;
        },
      };
    } catch (error) {
      limit[Symbol.dispose]();
      throw limit.reason() ?? (await this.#views.errorOf(error));
    }
  }

  async #useThreads(threads: number): Promise<void> {
    if (threads === this.#threadsNow) return;
    await this.#views.connection.run(`SET threads = ${threads}`);
    this.#threadsNow = threads;
  }

  async #makeMacros(names: readonly MacroName[], signal: AbortSignal): Promise<void> {
    const { createMacros } = await import("../sql/macros.ts");
    await createMacros(this.#views.connection, names, this.#macroFiles);
    if (this.#hasInstruments || !needInstruments(names)) return;
    await this.#make.instruments(signal);
    this.#hasInstruments = true;
  }

  async #prepare(text: string, kind: ReadStatement["kind"]): Promise<DuckDBPreparedStatement> {
    const extracted = await this.#views.connection.extractStatements(text);
    if (extracted.count !== 1) throw new RunvaultError("query_invalid", "the query must be one statement");
    const prepared = await extracted.prepare(0);
    if (!isKind(prepared.statementType, kind)) {
      throw new RunvaultError("query_invalid", "only a SELECT or an EXPLAIN of one can be run");
    }
    if (prepared.parameterCount > 0) {
      throw new RunvaultError("query_invalid", "the query has parameters: write their values into it");
    }
    return prepared;
  }

  async *#whole(prepared: DuckDBPreparedStatement, limit: Limit): AsyncGenerator<RowChunk> {
    using _ = limit;
    try {
      const result = await prepared.run();
      for (;;) {
        const chunk = await result.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) break;
        yield { chunk, rows: chunk.rowCount };
      }
    } catch (error) {
      throw limit.reason() ?? (await this.#views.errorOf(error));
    }
  }

  async *#stream(statement: ReadStatement, columns: number, limit: Limit): AsyncGenerator<RowChunk> {
    using _ = limit;
    const open = async (sql: string) => await (await this.#prepare(sql, "select")).stream();
    try {
      yield* markedStream(open, statement.text, columns);
    } catch (error) {
      const known = limit.reason();
      if (known !== undefined) throw known;
      throw error instanceof CutStream
        ? await this.#reasonOfCut(statement, error.rows)
        : inOwnLines(await this.#views.errorOf(error));
    }
  }

  async #copy(
    statement: ReadStatement,
    columns: readonly ResultColumn[],
    file: string,
    limit: Limit,
  ): Promise<number> {
    using _ = limit;
    if (statement.kind === "explain") {
      throw new RunvaultError(
        "query_invalid",
        "an EXPLAIN returns text, which cannot be written as Parquet",
        {
          hint: "Omit the format.",
        },
      );
    }
    try {
      const sql = parquetCopySql(statement.text, columns, file);
      const result = await this.#views.connection.runAndReadAll(sql);
      return Number(result.getRows()[0]?.[0]);
    } catch (error) {
      throw limit.reason() ?? inOwnLines(await this.#views.errorOf(error));
    }
  }

  /** Runs a query that ended early once more, reduced to one value that needs every cell, to get DuckDB's reason. */
  async #reasonOfCut(statement: ReadStatement, rows: number): Promise<RunvaultError> {
    using limit = new Limit(this.#views.connection, this.#timeoutMs, undefined);
    try {
      await this.#views.connection.run(`SELECT max(hash(q)) FROM (\n${statement.text}\n) q`);
    } catch (error) {
      return limit.reason() ?? inOwnLines(await this.#views.errorOf(error));
    }
    return new RunvaultError(
      "query_invalid",
      `the query failed after ${countText(rows, "row")}, and DuckDB gave no reason`,
      {
        hint: "Run it again; if memory is short, raise --memory (RUNVAULT_MEMORY).",
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#views[Symbol.asyncDispose]();
  }
}

/** The tables that a statement names, and those from which the others that it names are made. */
function neededTables({ tables, tradeTables, macros }: ReadStatement): readonly TableName[] {
  const traded = tradeTables.length === 0 ? [] : tradedTables;
  return [...new Set([...tables, ...traded, ...tablesOfMacros(macros)])];
}

async function* countRows(
  chunks: AsyncIterable<RowChunk>,
  count: (rows: number) => void,
): AsyncGenerator<RowChunk> {
  for await (const chunk of chunks) {
    count(chunk.rows);
    yield chunk;
  }
}

async function* batchesOf(
  chunks: AsyncIterable<RowChunk>,
  columns: number,
): AsyncGenerator<readonly (readonly DuckDBValue[])[]> {
  for await (const chunk of chunks) yield rowsOf(chunk, columns);
}

/** The rows of a chunk, without a stream's extra column. */
export function rowsOf({ chunk, rows }: RowChunk, columns: number): readonly (readonly DuckDBValue[])[] {
  const batch = chunk.getRows();
  batch.length = rows;
  for (const row of batch) row.length = columns;
  return batch;
}
