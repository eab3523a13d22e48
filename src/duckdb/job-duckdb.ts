import { makeFolder } from "../model/make-folder.ts";
import { type DuckDBOptions, interruptOn, type OpenDuckDB, openDuckDB } from "./open-duckdb.ts";
import { literal } from "./sql.ts";

/** What a job's DuckDB may take unless the operator says otherwise. */
export const usualMeans = { memoryLimitMb: 320, threads: 2 };

/** What a job's DuckDB may take, and where it spills. */
export type JobMeans = Required<Pick<DuckDBOptions, "memoryLimitMb" | "threads" | "tempDirectory">>;

/**
 * One DuckDB for one job after another: opening it takes longer than converting or verifying a small run does. Each
 * job has its own limits, and a folder of its own to spill to. One that cannot go on to the next job's folder, because
 * it has spilled or broken down, is replaced.
 */
export class JobDuckDB implements AsyncDisposable {
  #opened: OpenDuckDB | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * Work of one job, after that which others asked for before; several jobs may have turns side by side. Throws the
   * signal's reason, which interrupts the statement that runs.
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
    // its caller has the error; the next has its turn all the same
    this.#turn = mine.catch(() => {});
    return await mine;
  }

  /** DuckDB for a job, which has it until the next job asks for it, and leaves it open. */
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
        // a new one goes wherever it is told to
        this.#close();
      }
    }
    this.#opened = await openDuckDB(options);
    // a job reads a file once: kept in memory it would still be there through the next job
    await this.#opened.connection.run("SET enable_external_file_cache = false");
    return this.#opened;
  }

  /** Waits for the turn under way: a statement that still runs when DuckDB is closed crashes the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turn;
    this.#close();
  }

  #close(): void {
    this.#opened?.close();
    this.#opened = undefined;
  }
}
