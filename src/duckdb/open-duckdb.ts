import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { makeFolder } from "../model/make-folder.ts";
import { duckDBError } from "./duckdb-error.ts";
import { fileList, literal } from "./sql.ts";

export interface DuckDBOptions {
  /** What DuckDB may hold in memory before it spills, in MiB; what it takes by itself unless it is given. */
  readonly memoryLimitMb?: number;
  readonly threads: number;
  /** Folder for spilled data; made when it is missing. Without one nothing is spilled. */
  readonly tempDirectory?: string;
  /** Has times written as UTC, whatever the machine's zone; loading the zones takes a millisecond. */
  readonly utc?: boolean;
}

/** An open DuckDB in memory with one connection, and more on demand; close it with `await using` or `close()`. */
export interface OpenDuckDB extends AsyncDisposable {
  readonly instance: DuckDBInstance;
  /** Runs one query at a time. A query that still runs when DuckDB is closed crashes the process. */
  readonly connection: DuckDBConnection;
  /** Another connection, for a query beside that of the first; closed with it. */
  connect(): Promise<DuckDBConnection>;
  close(): void;
}

/**
 * Opens DuckDB, here alone, with everything that matters set: no extension is ever downloaded, no secret is read from
 * the user's folder, memory and threads are bounded, spilled data has its folder, and rows keep the order of their
 * files. Throws `internal` when it cannot be opened.
 */
export async function openDuckDB(options: DuckDBOptions): Promise<OpenDuckDB> {
  const { memoryLimitMb, threads, tempDirectory, utc = false } = options;
  if (tempDirectory !== undefined) await makeFolder(tempDirectory);
  const connections: DuckDBConnection[] = [];
  let instance: DuckDBInstance | undefined;
  const close = () => {
    for (const connection of connections) connection.closeSync();
    instance?.closeSync();
  };
  try {
    const opened = await DuckDBInstance.create(":memory:", {
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      allow_persistent_secrets: "false",
      ...(memoryLimitMb === undefined ? {} : { memory_limit: `${memoryLimitMb}MiB` }),
      threads: String(threads),
      temp_directory: tempDirectory ?? "",
      preserve_insertion_order: "true",
      // a conversion's buffers go back to the system at once, not when the next one wants them
      allocator_flush_threshold: "16MiB",
    });
    instance = opened;
    const connect = async () => {
      const connection = await opened.connect();
      connections.push(connection);
      return connection;
    };
    const connection = await connect();
    if (utc) await connection.run("SET TimeZone = 'UTC'");
    return { instance, connection, connect, close, [Symbol.asyncDispose]: async () => close() };
  } catch (thrown) {
    close();
    throw duckDBError(thrown, "DuckDB could not be opened");
  }
}

/**
 * Locks DuckDB up for SQL of people: it reads and writes these files and no others, and neither this nor any other
 * setting can be changed, but for the number of threads, which only a statement of ours does.
 */
export async function lockToFiles(
  { connection }: Pick<OpenDuckDB, "connection">,
  files: readonly string[],
): Promise<void> {
  // as they stand and as readers of Parquet write them: DuckDB compares the text of a path, before it looks for globs
  const paths = files.length === 0 ? "[]" : `[${files.map(literal).join(", ")}, ${fileList(files).slice(1)}`;
  const settings = [
    `SET allowed_paths = ${paths}`,
    "SET enable_external_access = false",
    "SET allowed_configs = ['threads']",
    "SET lock_configuration = true",
  ];
  await connection.run(settings.join(";\n"));
}

/** Interrupts whatever statement runs when the signal aborts, until disposed. */
export function interruptOn(
  signal: AbortSignal | undefined,
  { connection }: Pick<OpenDuckDB, "connection">,
): Disposable {
  const interrupt = () => connection.interrupt();
  signal?.addEventListener("abort", interrupt);
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", interrupt) };
}
