import { createHash } from "node:crypto";
import { lineHash } from "../../../row/row-hash.ts";

const lineFeed = 0x0a;

/** What stands for rows, one a line: in any order, or in the one in which they came. */
export class RowSum {
  readonly #inOrder = createHash("sha256");
  readonly #isOrdered: boolean;
  #rows = 0n;
  #sum = 0n;
  #rest: Uint8Array[] = [];

  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered;
  }

  /** Takes rows in, each with its line end, cut into chunks anywhere. */
  add(chunk: Uint8Array): void {
    if (this.#isOrdered) {
      this.#inOrder.update(chunk);
      return;
    }
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      const line = chunk.subarray(start, end);
      this.#sum += lineHash(this.#rest.length === 0 ? line : Buffer.concat([...this.#rest, line]));
      this.#rows++;
      this.#rest = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#rest.push(chunk.subarray(start));
  }

  /** The same for the same rows; ends it. */
  take(): string {
    return this.#isOrdered ? this.#inOrder.digest("hex") : `${this.#rows} ${this.#sum}`;
  }
}
