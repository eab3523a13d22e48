import { type Instant, toNanoseconds } from "../../row/instant.ts";

/** A power of two. */
const most = 1024;

/** The newest timestamps before the last one. */
export class LastTimes {
  readonly #high = new Float64Array(most);
  readonly #low = new Float64Array(most);
  #count = 0;

  add(high: number, low: number): void {
    const at = this.#count++ % most;
    this.#high[at] = high;
    this.#low[at] = low;
  }

  get newest(): bigint | undefined {
    return this.#count === 0 ? undefined : toNanoseconds(this.#back(1));
  }

  /** The newest, then older ones in growing steps back. */
  get steps(): readonly bigint[] {
    const steps: bigint[] = [];
    for (let back = 1; back <= Math.min(this.#count, most); back = Math.ceil(back * 1.5))
      steps.push(toNanoseconds(this.#back(back)));
    return steps;
  }

  #back(count: number): Instant {
    const at = (this.#count - count) % most;
    return { high: this.#high[at]!, low: this.#low[at]! };
  }
}
