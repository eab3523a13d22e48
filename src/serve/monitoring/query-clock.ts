import { RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";

/** Aborts its signal when the timed work takes too long. */
export class QueryClock {
  readonly signal: AbortSignal;
  readonly #mostMs: number;
  readonly #stop = new AbortController();

  constructor(mostMs: number, signal: AbortSignal | undefined) {
    this.#mostMs = mostMs;
    this.signal = AbortSignal.any([this.#stop.signal, ...(signal === undefined ? [] : [signal])]);
  }

  /** Chunks, each of which must come in time. */
  async *chunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const iterator = chunks[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.time(() => iterator.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }

  async time<T>(work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      const message = `the query returned nothing within ${this.#mostMs} ms, the limit of this server`;
      this.#stop.abort(
        new RunvaultError("limit_exceeded", message, { hint: "Ask for a smaller time window." }),
      );
    }, timerMs(this.#mostMs));
    try {
      return await work();
    } catch (error) {
      // whatever failed afterwards, the time limit is the reason
      if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
