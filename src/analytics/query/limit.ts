import type { DuckDBConnection } from "@duckdb/node-api";
import { RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { queryTimedOut } from "./query-timed-out.ts";

/** Interrupts a connection when time is up or the signal says so, and remembers why. */
export class Limit implements Disposable {
  readonly #deadline: NodeJS.Timeout | undefined;
  readonly #connection: DuckDBConnection;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#stop(RunvaultError.from(this.#signal?.reason));
  readonly #stopped = new AbortController();
  #repeat: NodeJS.Timeout | undefined;

  /** Without `timeoutMs` only the signal ends the work. */
  constructor(connection: DuckDBConnection, timeoutMs: number | undefined, signal: AbortSignal | undefined) {
    this.#connection = connection;
    this.#signal = signal;
    if (timeoutMs !== undefined) {
      this.#deadline = setTimeout(() => {
        this.#stop(queryTimedOut(timeoutMs));
      }, timerMs(timeoutMs));
    }
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  reason(): RunvaultError | undefined {
    return this.signal.aborted ? (this.signal.reason as RunvaultError) : undefined;
  }

  /** Aborts when the limit is reached: for work outside of the connection. */
  get signal(): AbortSignal {
    return this.#stopped.signal;
  }

  #stop(reason: RunvaultError): void {
    // the first reason stays
    this.#stopped.abort(reason);
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
