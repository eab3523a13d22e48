import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { makeFolder } from "../model/make-folder.ts";
import { duckDBError } from "./duckdb-error.ts";
import { fileList, literal } from "./sql.ts";

export interface DuckDBOptions {
  /** DuckDB's memory before it spills, in MiB; default: its own choice. */
  readonly memoryLimitMb?: number;
  readonly threads: number;
  /** Folder for spilled data, created if missing. Without one nothing is spilled. */
  readonly tempDirectory?: string;
  /** Writes times in UTC, whatever the machine's zone; loading the zones takes a millisecond. */
  readonly utc?: boolean;
}

/** An open in-memory DuckDB with one connection, and more on demand; close it with `await using` or `close()`. */
export interface OpenDuckDB extends AsyncDisposable {
  readonly instance: DuckDBInstance;
  /** Runs one query at a time. Closing DuckDB during a query crashes the process. */
  readonly connection: DuckDBConnection;
  /** Another connection, for a parallel query; closed with it. */
  connect(): Promise<DuckDBConnection>;
  close(): void;
}

/**
 * Opens DuckDB, the only place to do so, with everything that matters set: no extension is ever downloaded, no secret
 * is read from the user's folder, memory and threads are limited, spilled data has its folder, and rows keep their
 * files' order. Throws `internal` if it cannot be opened.
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
      // a conversion's buffers return to the system at once, not when the next one needs them
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
 * Locks DuckDB for users' SQL: it can read and write only these files, and no setting can be changed except the number
 * of threads, which only our own statement does.
 */
export async function lockToFiles(
  { connection }: Pick<OpenDuckDB, "connection">,
  files: readonly string[],
): Promise<void> {
  // both raw and as readers of Parquet write them: DuckDB compares a path's text before it expands globs
  const paths = files.length === 0 ? "[]" : `[${files.map(literal).join(", ")}, ${fileList(files).slice(1)}`;
  const settings = [
    `SET allowed_paths = ${paths}`,
    "SET enable_external_access = false",
    "SET allowed_configs = ['threads']",
    "SET lock_configuration = true",
  ];
  await connection.run(settings.join(";\n"));
}

/** Interrupts any running statement when the signal aborts, until disposed. */
export function interruptOn(
  signal: AbortSignal | undefined,
  { connection }: Pick<OpenDuckDB, "connection">,
): Disposable {
  const interrupt = () => connection.interrupt();
  signal?.addEventListener("abort", interrupt);
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", interrupt) };
}
