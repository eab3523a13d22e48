import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { RunvaultError } from "../model/error.ts";
import { makeFolder } from "../model/make-folder.ts";

export interface DuckDBOptions {
  /** What DuckDB may hold in memory before it spills to `tempDirectory`, in MiB. */
  readonly memoryLimitMb: number;
  readonly threads: number;
  /** Folder for spilled data; made when it is missing. */
  readonly tempDirectory: string;
  /** Database file; in memory unless set. */
  readonly file?: string;
}

/** An open DuckDB with one connection, and more on demand; close it with `await using` or `close()`. */
export interface OpenDuckDB extends AsyncDisposable {
  readonly instance: DuckDBInstance;
  /** Runs one query at a time. A query that still runs when DuckDB is closed crashes the process. */
  readonly connection: DuckDBConnection;
  /** Another connection, for a query beside that of the first; closed with it. */
  connect(): Promise<DuckDBConnection>;
  close(): void;
}

/**
 * Opens DuckDB with everything that matters set: no extension is ever downloaded, memory and threads are bounded,
 * spilled data has its folder, and rows keep the order of their files. Throws `internal` when it cannot be opened.
 */
export async function openDuckDB(options: DuckDBOptions): Promise<OpenDuckDB> {
  await makeFolder(options.tempDirectory);
  try {
    const instance = await DuckDBInstance.create(options.file ?? ":memory:", {
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      memory_limit: `${options.memoryLimitMb}MiB`,
      threads: String(options.threads),
      temp_directory: options.tempDirectory,
      preserve_insertion_order: "true",
      // a conversion's buffers go back to the system at once, not when the next one wants them
      allocator_flush_threshold: "16MiB",
    });
    const connections: DuckDBConnection[] = [];
    const connect = async () => {
      const connection = await instance.connect();
      connections.push(connection);
      return connection;
    };
    const close = () => {
      for (const connection of connections) connection.closeSync();
      instance.closeSync();
    };
    return {
      instance,
      connection: await connect(),
      connect,
      close,
      [Symbol.asyncDispose]: async () => close(),
    };
  } catch (thrown) {
    throw duckDBError(thrown, "DuckDB could not be opened");
  }
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

/**
 * What DuckDB threw as a RunvaultError. DuckDB's Node errors carry their class only as the first words of the message
 * ("IO Error: …"), so that is where it is read.
 */
export function duckDBError(thrown: unknown, doing: string): RunvaultError {
  if (thrown instanceof RunvaultError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const firstLine = text.split("\n")[0] ?? text;
  const failed = (code: "storage_full" | "storage_read_only" | "storage_forbidden" | "storage_failed") =>
    new RunvaultError(code, `${doing}: ${firstLine}`, { cause: thrown });
  if (/No space left on device|failed to offload|max_temp_directory_size/i.test(text))
    return failed("storage_full");
  if (/Read-only file system/i.test(text)) return failed("storage_read_only");
  if (/Permission denied/i.test(text)) return failed("storage_forbidden");
  if (text.startsWith("IO Error")) return failed("storage_failed");
  const hint = text.startsWith("Out of Memory Error")
    ? { hint: "Free some memory; query and export take --memory and --threads." }
    : undefined;
  return new RunvaultError("internal", `${doing}: ${firstLine}`, { cause: thrown, ...hint });
}
