import { RunvaultError } from "../../model/error.ts";
import { requestCancelled } from "../../model/usual-errors.ts";

/** Most waiting requests: with scans of seconds, so many get their turn in time. */
const mostWaiting = 8;
/** Longest wait: clients wait about a minute in all, and the scan comes after it. */
const mostWaitMs = 20_000;

/** Lets one request scan at a time, in order of arrival. */
export class ScanQueue {
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;

  /**
   * Waits for its turn; dispose the result when the scan is over. Throws `rate_limited` if too many wait or it waits
   * too long, and `interrupted` when the signal aborts.
   */
  async turn(signal: AbortSignal | undefined): Promise<Disposable> {
    if (signal?.aborted) throw requestCancelled(signal.reason);
    if (!this.#isBusy) {
      this.#isBusy = true;
      return this.#held();
    }
    if (this.#waiting.length >= mostWaiting) {
      throw busy(`a checksum scan is running and ${mostWaiting} are waiting, which is the limit`);
    }
    await new Promise<void>((resolve, reject) => {
      const leave = (reason: RunvaultError) => {
        this.#waiting.splice(this.#waiting.indexOf(start), 1);
        stopWaiting();
        reject(reason);
      };
      const onAbort = () => leave(requestCancelled(signal!.reason));
      const timer = setTimeout(() => leave(busy("other checksum scans take too long")), mostWaitMs);
      const stopWaiting = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      const start = () => {
        stopWaiting();
        resolve();
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(start);
    });
    return this.#held();
  }

  #held(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        const next = this.#waiting.shift();
        if (next === undefined) this.#isBusy = false;
        else next();
      },
    };
  }
}

function busy(why: string): RunvaultError {
  return new RunvaultError("rate_limited", why, {
    retryAfterMs: 5000,
    hint: "Try again later, when one of them has finished.",
  });
}
