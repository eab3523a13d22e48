import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RowRequest } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import type { AnswerBody } from "./answer.ts";

/** The minimum rate of rows. */
export interface LeastRate {
  /** Of a row answer as it comes over the wire. */
  readonly bytesPerSecond: number;
  /** Time spent waiting for bytes over which the rate is measured. */
  readonly windowMs: number;
}

/**
 * Enforces a minimum rate on the rows of one listing, in one answer or page by page. Only time in which the reader
 * waits for bytes of a started answer counts, not the job's own work or the gateway's computing.
 */
export class RowRate {
  readonly #least: LeastRate | undefined;
  readonly #place: ErrorPlace;
  readonly #onBody: RowRequest["onBody"];
  /** Since the last window ended, in bodies that ended before the current one. */
  #waitedMs = 0;
  #bytes = 0;

  constructor(least: LeastRate | undefined, place: ErrorPlace, onBody?: RowRequest["onBody"]) {
    this.#least = least;
    this.#place = place;
    this.#onBody = onBody;
  }

  /** Watches a body until disposed and ends it with `too_slow` if it is. Reports a body that is complete by then. */
  watch(body: AnswerBody): Disposable {
    const stop = this.#hold(body);
    return {
      [Symbol.dispose]: () => {
        stop();
        const { receivedBytes: bytes, arrivalMs: ms } = body;
        if (ms !== undefined) this.#onBody?.({ bytes, ms });
      },
    };
  }

  #hold(body: AnswerBody): () => void {
    const least = this.#least;
    if (least === undefined) return () => {};
    let from = { waitedMs: 0, bytes: 0 };
    const waited = () => this.#waitedMs + body.waitedMs - from.waitedMs;
    const came = () => this.#bytes + body.receivedBytes - from.bytes;
    const look = () => {
      if (waited() < least.windowMs) return;
      const bytesPerSecond = (came() * 1000) / waited();
      if (bytesPerSecond < least.bytesPerSecond) body.fail(this.#tooSlow(bytesPerSecond, least));
      from = { waitedMs: body.waitedMs, bytes: body.receivedBytes };
      this.#waitedMs = 0;
      this.#bytes = 0;
    };
    // pages may each be shorter than a window
    look();
    const timer = setInterval(look, Math.min(1_000, least.windowMs));
    return () => {
      clearInterval(timer);
      this.#waitedMs = waited();
      this.#bytes = came();
    };
  }

  #tooSlow(bytesPerSecond: number, least: LeastRate): RunvaultError {
    const [is, wanted] = [bytesPerSecond, least.bytesPerSecond].map((rate) => byteText(Math.round(rate)));
    return new RunvaultError(
      "too_slow",
      `rows arrived at ${is} a second over ${Math.round(least.windowMs / 1000)} s of waiting, below the ${wanted} a second of --min-rate`,
      { place: this.#place },
    );
  }
}
