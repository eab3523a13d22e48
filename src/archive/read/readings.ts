import { rm } from "node:fs/promises";
import type { Layout } from "../layout.ts";
import { lockFile } from "../lock.ts";

/**
 * Keeps every file of current and later manifests from being removed by commits and garbage collection until disposed:
 * a lock with this reader's own file, whose name has the reader's start time. Take it before reading any manifest. A
 * killed reader leaves a file that nobody holds. If locks are impossible, because the archive is read-only or its file
 * system has none, the reader works without one: replaced files stay for an hour, and garbage collection has its own
 * grace period.
 */
export async function holdForReading(layout: Layout): Promise<AsyncDisposable> {
  // before the lock: the reader looks at manifests once it has it
  const file = layout.readingFile(Date.now(), `${process.pid}-${++begun}`);
  try {
    const lock = await lockFile(layout, file, "reads this archive", {});
    return {
      [Symbol.asyncDispose]: async () => {
        await rm(file, { force: true }).catch(() => {});
        await lock[Symbol.asyncDispose]();
      },
    };
  } catch {
    return { [Symbol.asyncDispose]: async () => {} };
  }
}
let begun = 0;

/** How long other readers may join a reading, and how long it is then held at least. */
const joinableMs = 5_000;

/**
 * Combines the many short readings of a server: those that begin within a few seconds share a lock, because taking one
 * costs more than many an answer.
 */
export class Readings implements AsyncDisposable {
  readonly #layout: Layout;
  #joinable: Promise<Reading> | undefined;
  readonly #timers = new Map<Reading, NodeJS.Timeout>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** Held for some seconds in any case, until rows begin, and then as long as somebody holds it. */
  async join(): Promise<Reading> {
    this.#joinable ??= this.#begin();
    return await this.#joinable;
  }

  async #begin(): Promise<Reading> {
    const reading = new Reading(await holdForReading(this.#layout));
    const after = (then: () => void) => {
      this.#timers.set(reading, setTimeout(then, joinableMs).unref());
    };
    after(() => {
      this.#joinable = undefined;
      after(() => {
        this.#timers.delete(reading);
        reading.leave();
      });
    });
    return reading;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#joinable;
    this.#joinable = undefined;
    for (const [reading, timer] of this.#timers) {
      clearTimeout(timer);
      reading.leave();
    }
    const held = [...this.#timers.keys()];
    this.#timers.clear();
    await Promise.all(held.map((reading) => reading.left));
  }
}

/** One lock of several readers. */
export class Reading {
  readonly #lock: AsyncDisposable;
  #readers = 1;
  /** Resolves when it has been released, if that has begun. */
  left: Promise<void> = Promise.resolve();

  constructor(lock: AsyncDisposable) {
    this.#lock = lock;
  }

  /** Keeps the lock until disposed. */
  hold(): Disposable {
    if (this.#readers === 0) return { [Symbol.dispose]: () => {} };
    this.#readers += 1;
    return { [Symbol.dispose]: () => this.leave() };
  }

  leave(): void {
    this.#readers -= 1;
    if (this.#readers > 0) return;
    // a leftover file is collected as garbage
    this.left = Promise.resolve(this.#lock[Symbol.asyncDispose]()).catch(() => {});
  }
}
