import { makeFolder } from "../model/make-folder.ts";
import { type DuckDBOptions, interruptOn, type OpenDuckDB, openDuckDB } from "./open-duckdb.ts";
import { literal } from "./sql.ts";

/** Default limits of a job's DuckDB. */
export const usualMeans = { memoryLimitMb: 320, threads: 2 };

/** Limits of a job's DuckDB, and where it spills. */
export type JobMeans = Required<Pick<DuckDBOptions, "memoryLimitMb" | "threads" | "tempDirectory">>;

/**
 * One DuckDB for successive jobs, because opening it takes longer than converting or verifying a small run. Each job
 * has its own limits and spill folder. One that cannot switch to the next folder, because it has spilled or failed, is
 * replaced.
 */
export class JobDuckDB implements AsyncDisposable {
  #opened: OpenDuckDB | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * Runs a job's work after earlier requests; several jobs may take turns. Throws the signal's reason, which interrupts
   * the current statement.
   */
  async inTurn<R>(
    means: JobMeans,
    signal: AbortSignal,
    work: (duckdb: OpenDuckDB) => Promise<R>,
  ): Promise<R> {
    const mine = this.#turn.then(async () => {
      signal.throwIfAborted();
      const duckdb = await this.forJob(means);
      using _interrupt = interruptOn(signal, duckdb);
      return await work(duckdb);
    });
    // its caller gets the error; the next turn starts anyway
    this.#turn = mine.catch(() => {});
    return await mine;
  }

  /** DuckDB for a job, until the next job asks for it. */
  async forJob(options: JobMeans): Promise<OpenDuckDB> {
    const { memoryLimitMb, threads, tempDirectory } = options;
    if (this.#opened !== undefined) {
      await makeFolder(tempDirectory);
      try {
        await this.#opened.connection.run(
          `SET temp_directory = ${literal(tempDirectory)}; SET memory_limit = '${memoryLimitMb}MiB'; SET threads = ${threads}`,
        );
        return this.#opened;
      } catch {
        // a new one can use any folder
        this.#close();
      }
    }
    this.#opened = await openDuckDB(options);
    // a job reads a file once: a cache would keep it in memory through the next job
    await this.#opened.connection.run("SET enable_external_file_cache = false");
    return this.#opened;
  }

  /** Waits for the current turn: closing DuckDB during a statement crashes the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turn;
    this.#close();
  }

  #close(): void {
    this.#opened?.close();
    this.#opened = undefined;
  }
}
