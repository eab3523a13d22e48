import { createHash } from "node:crypto";
import type { Table } from "../../model/profile/table.ts";
import { Turns } from "../../model/turns.ts";
import { lineHash } from "../../row/row-hash.ts";
import { comparableLine } from "../../row/same-line.ts";
import { linesWithoutOddZeros } from "../../row/strict-line.ts";
import type { Window } from "./held-window.ts";
import { eachLine, timeOf } from "./table-asks.ts";

/** Count and hash sum over the canonical lines of rows, in any order; a line that is not a row is hashed by its bytes. */
export class LineHash {
  readonly #table: Table;
  readonly #bytes = createHash("sha256");
  rows = 0;
  sum = 0n;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Hash of the lines in their order; can be read only once. */
  get sha256(): string {
    return this.#bytes.digest("hex");
  }

  /** Adds a text's lines; with `within`, leaves out those whose time lies outside it. */
  async add(text: Buffer, within?: Window): Promise<void> {
    const turns = new Turns();
    const clean = await linesWithoutOddZeros(text, this.#table);
    this.#bytes.update(clean);
    for (const bytes of eachLine(clean)) {
      if (turns.isDue(bytes.byteLength)) await turns.next();
      const line = bytes.toString("utf8");
      if (within !== undefined && !isIn(within, timeOf(line))) continue;
      this.rows++;
      this.sum += lineHash(comparableLine(this.#table, line));
    }
  }
}

function isIn({ from, to }: Window, time: string | null): boolean {
  return time === null || (BigInt(time) >= from && BigInt(time) < to);
}
