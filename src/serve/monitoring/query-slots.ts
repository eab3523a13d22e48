import { RunvaultError } from "../../model/error.ts";

/** Limits the number of simultaneous row queries. */
export class QuerySlots {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws `rate_limited`; dispose the result when the query is over. */
  take(): Disposable {
    if (this.#taken >= this.#most) {
      const queries = this.#most === 1 ? "a query is running" : `${this.#most} queries are running`;
      throw new RunvaultError("rate_limited", `${queries} already, which is the limit`, {
        retryAfterMs: 1000,
        hint: "Try again later, when one of them has finished.",
      });
    }
    this.#taken += 1;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#taken -= 1;
        isHeld = false;
      },
    };
  }
}
