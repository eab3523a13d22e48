import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";

/** Most tables of runs that are remembered; a command asks about a few at a time. */
const mostTables = 1000;
const openBrace = 0x7b;

/**
 * What a gateway means by 204 for rows. Once it has answered 204 for a table that has rows, 204 is taken for a window
 * without rows everywhere. Otherwise the meaning is unknown: the route may not work.
 */
export class NoContent {
  #isUsual = false;
  /** What came so far, by run and table. */
  readonly #came = new Map<string, { readonly rows?: true; readonly nothing?: true }>();

  /** Notes a 204, or rows, for a run's table. */
  note(run: RunRef, table: TableName, what: "rows" | "nothing"): void {
    if (this.#isUsual) return;
    const key = keyOf(run, table);
    const came = { ...this.#came.get(key), [what]: true as const };
    this.#isUsual = came.rows === true && came.nothing === true;
    this.#came.delete(key);
    this.#came.set(key, came);
    const [oldest] = this.#came.keys();
    if (this.#came.size > mostTables && oldest !== undefined) this.#came.delete(oldest);
  }

  /** Passes rows on, and notes the first. */
  async *noting(
    run: RunRef,
    table: TableName,
    chunks: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array, undefined> {
    let isNoted = false;
    for await (const chunk of chunks) {
      if (!isNoted && chunk.includes(openBrace)) {
        isNoted = true;
        this.note(run, table, "rows");
      }
      yield chunk;
    }
  }

  /** Whether a run's table was answered with 204 and nothing shows what that means. */
  isUnclear(run: RunRef, table: TableName): boolean {
    return !this.#isUsual && this.#came.get(keyOf(run, table))?.nothing === true;
  }
}

function keyOf({ instanceId, runId }: RunRef, table: TableName): string {
  return JSON.stringify([instanceId, runId, table]);
}
