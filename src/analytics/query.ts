import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBPreparedStatement,
  type DuckDBType,
  type DuckDBValue,
} from "@duckdb/node-api";
import type { Manifest } from "../archive/manifest.ts";
import { fileList, literal } from "../archive/sql.ts";
import { RunvaultError } from "../model/error.ts";
import { type TableName, tables } from "../model/table.ts";
import { committedParquet, type WithheldTable, withheldTables } from "./committed-parquet.ts";
import { asQueryError } from "./query-error.ts";
import { createViews, type QueryArchive } from "./query-views.ts";
import { isKind, type ReadStatement, readStatement } from "./statement.ts";
import { byTypes, refuseWiderTypes, type TypedParquet } from "./typed-parquet.ts";

export interface QueryOptions {
  /** Also the tables that are neither COMPLETE nor OPEN; default false. */
  readonly allowIncomplete?: boolean;
  /** Memory DuckDB may use before it spills to the temporary folder, in MiB; default 1024. */
  readonly memoryLimitMb?: number;
  /** Longest time a query may run, reading its rows included, in milliseconds; default 300,000. */
  readonly timeoutMs?: number;
  /** Threads of DuckDB; default 4. */
  readonly threads?: number;
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
  /**
   * Rows in batches, as they are computed, in bounded memory. Ends only when the answer is whole; throws
   * `query_invalid` when the query fails, is over its time, or is aborted.
   */
  batches(): AsyncIterable<readonly (readonly DuckDBValue[])[]>;
}

/** Views over an archive's committed files, and SQL over them that can only read. */
export interface Query extends AsyncDisposable {
  /** Tables of runs that the views leave out for their state. */
  readonly withheld: readonly WithheldTable[];
  /** Runs one SELECT, or an EXPLAIN of one. Throws `query_invalid` with DuckDB's message. One at a time. */
  run(sql: string, signal?: AbortSignal): Promise<QueryResult>;
}

/**
 * Opens an in-memory DuckDB with the views of an archive, and locks it: no file but the committed ones, no
 * configuration, no extension. The views show the generation committed now, for as long as this is open.
 * Throws `archive_damaged` where a committed file is missing.
 */
export async function openQuery(archive: QueryArchive, options: QueryOptions = {}): Promise<Query> {
  const { allowIncomplete = false, memoryLimitMb = 1024, timeoutMs = 300_000, threads = 4, signal } = options;
  const { manifests, files } = await presentFiles(archive, allowIncomplete);
  signal?.throwIfAborted();
  const spill = await mkdtemp(join(tmpdir(), "runvault-query-"));
  let instance: DuckDBInstance | undefined;
  try {
    instance = await DuckDBInstance.create(":memory:", {
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      allow_persistent_secrets: "false",
      memory_limit: `${memoryLimitMb}MiB`,
      threads: String(threads),
      temp_directory: spill,
      preserve_insertion_order: "true",
    });
    const connection = await instance.connect();
    await connection.run("SET TimeZone = 'UTC'");
    await createViews(connection, archive, manifests, files);
    signal?.throwIfAborted();
    const allowed = pathsOf(files);
    await connection.run(`SET allowed_paths = ${allowedPaths(allowed)}`);
    await connection.run("SET enable_external_access = false");
    await connection.run("SET lock_configuration = true");
    const withheld = allowIncomplete ? [] : withheldTables(manifests);
    return new LockedQuery(instance, connection, spill, timeoutMs, allowed, withheld);
  } catch (error) {
    instance?.closeSync();
    await rm(spill, { recursive: true, force: true });
    throw asQueryError(error, pathsOf(files));
  }
}

/** The files as they stand and as the views write them: DuckDB compares the text of a path, before it looks for globs. */
function allowedPaths(files: readonly string[]): string {
  if (files.length === 0) return "[]";
  return `[${files.map(literal).join(", ")}, ${fileList(files).slice(1)}`;
}

async function presentFiles(
  archive: QueryArchive,
  allowIncomplete: boolean,
): Promise<{ manifests: Manifest[]; files: Map<TableName, TypedParquet[]> }> {
  for (let attempt = 1; ; attempt++) {
    const manifests = await archive.manifests();
    // after the manifests: types only ever widen while some run has the former
    await archive.refresh();
    const files = new Map<TableName, TypedParquet[]>();
    for (const { name } of tables) {
      const groups = byTypes(committedParquet(archive, manifests, name, allowIncomplete));
      refuseWiderTypes(name, groups, archive.exactTypes(name));
      files.set(name, groups);
    }
    const missing = await firstMissing(pathsOf(files));
    if (missing === null) return { manifests, files };
    // a commit between the reading of the manifests and here replaces files; then the new manifests name others
    if (attempt === 3) {
      throw new RunvaultError("archive_damaged", "a committed file is missing", {
        place: { file: missing },
        hint: "Run `runvault verify`; archiving the run again puts the file back.",
      });
    }
  }
}

function pathsOf(files: ReadonlyMap<TableName, readonly TypedParquet[]>): string[] {
  return [...files.values()].flat().flatMap((group) => group.files.map(({ file }) => file));
}

async function firstMissing(paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    try {
      await stat(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
      throw RunvaultError.from(error, { place: { file: path } });
    }
  }
  return null;
}

class LockedQuery implements Query {
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;
  readonly #spill: string;
  readonly #timeoutMs: number;
  readonly #files: readonly string[];
  readonly withheld: readonly WithheldTable[];

  constructor(
    instance: DuckDBInstance,
    connection: DuckDBConnection,
    spill: string,
    timeoutMs: number,
    files: readonly string[],
    withheld: readonly WithheldTable[],
  ) {
    this.withheld = withheld;
    this.#instance = instance;
    this.#connection = connection;
    this.#spill = spill;
    this.#timeoutMs = timeoutMs;
    this.#files = files;
  }

  async run(sql: string, signal?: AbortSignal): Promise<QueryResult> {
    const statement = await readStatement(this.#connection, sql);
    const limit = new Limit(this.#connection, this.#timeoutMs, signal);
    try {
      const asked = await this.#prepare(statement.text, statement.kind);
      const columns = Array.from({ length: asked.columnCount }, (_, index) => ({
        name: asked.columnName(index),
        type: asked.columnType(index),
      }));
      const batches =
        statement.kind === "explain" ? this.#whole(asked, limit) : this.#stream(statement, columns, limit);
      return { columns, batches: () => batches };
    } catch (error) {
      limit[Symbol.dispose]();
      throw limit.reason() ?? asQueryError(error, this.#files);
    }
  }

  async #prepare(text: string, kind: ReadStatement["kind"]): Promise<DuckDBPreparedStatement> {
    const extracted = await this.#connection.extractStatements(text);
    if (extracted.count !== 1) throw new RunvaultError("query_invalid", "one statement is expected");
    const prepared = await extracted.prepare(0);
    if (!isKind(prepared.statementType, kind)) {
      throw new RunvaultError("query_invalid", "only a SELECT, or an EXPLAIN of one, can be run");
    }
    if (prepared.parameterCount > 0) {
      throw new RunvaultError("query_invalid", "the query has parameters; write the values into it");
    }
    return prepared;
  }

  async *#whole(
    prepared: DuckDBPreparedStatement,
    limit: Limit,
  ): AsyncGenerator<readonly (readonly DuckDBValue[])[]> {
    using _ = limit;
    try {
      yield await (await prepared.run()).getRows();
    } catch (error) {
      throw limit.reason() ?? asQueryError(error, this.#files);
    }
  }

  /**
   * A streaming result of the DuckDB client that fails or is interrupted ends as if it were whole. So the rows are
   * followed by a last one that says so; an answer without it was cut.
   */
  async *#stream(
    statement: ReadStatement,
    columns: readonly ResultColumn[],
    limit: Limit,
  ): AsyncGenerator<readonly (readonly DuckDBValue[])[]> {
    using _ = limit;
    const nulls = columns.map(() => "NULL").join(", ");
    const marked = `SELECT *, NULL::BOOLEAN FROM (\n${statement.text}\n) UNION ALL SELECT ${nulls}, true`;
    let ended = false;
    let rows = 0;
    try {
      const result = await (await this.#prepare(marked, "select")).stream();
      for (;;) {
        const chunk = await result.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) break;
        if (ended) throw new RunvaultError("internal", "rows came after the last row of the answer");
        const batch = chunk.getRows();
        if (batch.at(-1)?.at(-1) === true) {
          ended = true;
          batch.pop();
        }
        for (const row of batch) {
          if (row.pop() !== null)
            throw new RunvaultError("internal", "the last row of the answer came early");
        }
        rows += batch.length;
        if (batch.length > 0) yield batch;
      }
    } catch (error) {
      throw limit.reason() ?? asQueryError(error, this.#files);
    }
    if (ended) return;
    throw limit.reason() ?? (await this.#reasonOfCut(statement, rows));
  }

  /** Runs a cut query once more, reduced to one value that needs every cell, because only then DuckDB says why. */
  async #reasonOfCut(statement: ReadStatement, rows: number): Promise<RunvaultError> {
    using limit = new Limit(this.#connection, this.#timeoutMs, undefined);
    try {
      await this.#connection.run(`SELECT max(hash(q)) FROM (\n${statement.text}\n) q`);
    } catch (error) {
      return limit.reason() ?? asQueryError(error, this.#files);
    }
    return new RunvaultError(
      "query_invalid",
      `the query failed after ${rows} rows, and DuckDB gave no reason`,
      {
        hint: "Run it again; if memory is short, raise --memory.",
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.closeSync();
    this.#instance.closeSync();
    await rm(this.#spill, { recursive: true, force: true });
  }
}

/** Interrupts a connection when time is up or the signal says so, and remembers why. */
class Limit implements Disposable {
  readonly #deadline: NodeJS.Timeout;
  readonly #connection: DuckDBConnection;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#stop(RunvaultError.from(this.#signal?.reason));
  #repeat: NodeJS.Timeout | undefined;
  #reason: RunvaultError | undefined;

  constructor(connection: DuckDBConnection, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#connection = connection;
    this.#signal = signal;
    this.#deadline = setTimeout(() => {
      this.#stop(
        new RunvaultError("query_invalid", `the query took longer than ${timeoutMs / 1000} s`, {
          hint: "Narrow it, or raise --timeout.",
        }),
      );
    }, timeoutMs);
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  reason(): RunvaultError | undefined {
    return this.#reason;
  }

  #stop(reason: RunvaultError): void {
    this.#reason ??= reason;
    this.#connection.interrupt();
    // an interrupt between two steps of a query is lost, so it is repeated until the query is gone
    this.#repeat ??= setInterval(() => this.#connection.interrupt(), 100);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#deadline);
    clearInterval(this.#repeat);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}
