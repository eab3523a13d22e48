import { createHash } from "node:crypto";
import { lineHash } from "../../../row/row-hash.ts";

const lineFeed = 0x0a;

/**
 * A digest of rows, one per line, by their bytes or by what `said` makes of them: independent of order, or in order of
 * arrival.
 */
export class RowSum {
  readonly #inOrder = createHash("sha256");
  readonly #isOrdered: boolean;
  readonly #said: ((line: Uint8Array) => string) | undefined;
  #rows = 0n;
  #sum = 0n;
  #rest: Uint8Array[] = [];

  constructor(isOrdered: boolean, said?: (line: Uint8Array) => string) {
    this.#isOrdered = isOrdered;
    this.#said = said;
  }

  /** Takes rows in, each with its line end, cut into chunks anywhere. */
  add(chunk: Uint8Array): void {
    if (this.#isOrdered && this.#said === undefined) {
      this.#inOrder.update(chunk);
      return;
    }
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      const piece = chunk.subarray(start, end);
      const line = this.#rest.length === 0 ? piece : Buffer.concat([...this.#rest, piece]);
      const text = this.#said?.(line) ?? line;
      if (this.#isOrdered) this.#inOrder.update(text).update("\n");
      else this.#sum += lineHash(text);
      this.#rows++;
      this.#rest = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#rest.push(chunk.subarray(start));
  }

  /** The digest, equal for equal rows; ends the sum. */
  take(): string {
    return this.#isOrdered ? this.#inOrder.digest("hex") : `${this.#rows} ${this.#sum}`;
  }
}
