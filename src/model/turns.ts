import { setImmediate as nextTurn } from "node:timers/promises";

/** How long a loop keeps the thread: signals, timers and other answers wait meanwhile. */
const keepMs = 8;
/** Work between two looks at the clock: about a hundred rows. */
const workPerLook = 64 * 1024;
/** What a line costs beside its bytes, in bytes. */
const lineWork = 256;

/**
 * Lets the event loop go on while a loop works through what a gateway sent: chunks that are here already bring no turn of
 * their own, and how much work they are is the gateway's choice. Used as `if (turns.isDue(bytes)) await turns.next()`, so
 * that a step costs an addition, and no promise.
 */
export class Turns {
  #work = 0;
  #since = performance.now();

  /** Counts the work of a line or piece of so many bytes; true when it is time for a turn of the event loop. */
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

  /** What some work makes of each of several values, with turns between them; `bytesEach` is how long one is. */
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
