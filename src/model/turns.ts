import { setImmediate as nextTurn } from "node:timers/promises";

/** How long a loop keeps the thread: signals, timers and other answers wait meanwhile. */
const keepMs = 8;
/** Work between two looks at the clock: about a hundred rows. */
const workPerLook = 64 * 1024;
/** What a line costs beside its bytes, in bytes. */
const lineWork = 256;

/**
 * Lets the event loop run while a loop processes a gateway's data: buffered chunks bring no turn of their own, and the
 * gateway decides how much work they are. Used as `if (turns.isDue(bytes)) await turns.next()`, so that a step costs
 * just an addition.
 */
export class Turns {
  #work = 0;
  #since = performance.now();

  /** Counts the work for so many bytes; true when a turn of the event loop is due. */
  isDue(bytes: number): boolean {
    this.#work += bytes + lineWork;
    if (this.#work < workPerLook) return false;
    this.#work = 0;
    return performance.now() - this.#since >= keepMs;
  }

  /** One turn of the event loop. */
  async next(): Promise<void> {
    await nextTurn();
    this.#since = performance.now();
  }

  /** Maps values with turns in between; `bytesEach` is the size of one. */
  async map<T, R>(
    values: Iterable<T>,
    work: (value: T, index: number) => R,
    bytesEach = 0,
  ): Promise<Awaited<R>[]> {
    const results: Awaited<R>[] = [];
    for (const value of values) {
      const result = work(value, results.length);
      results.push(result instanceof Promise ? await result : (result as Awaited<R>));
      if (this.isDue(bytesEach)) await this.next();
    }
    return results;
  }
}
