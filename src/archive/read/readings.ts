import { rm } from "node:fs/promises";
import type { Layout } from "../layout.ts";
import { lockFile } from "../lock.ts";

/**
 * Has commits and garbage collection leave every file that a manifest names from here on, until it is disposed of: a lock of
 * this reader's own, whose name says when the reader began. Taken ahead of the first look at a manifest. A killed reader leaves
 * a file that nobody holds. Where no lock can be had, in an archive that is read-only or whose file system has none, the
 * reader reads without: what a commit replaces stays for an hour, and garbage collection has its own grace.
 */
export async function holdForReading(layout: Layout): Promise<AsyncDisposable> {
  // ahead of the lock: the reader looks at manifests once it has it
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

/** For how long readers join one that has begun, and for how long, at least, each is held from then on. */
const joinableMs = 5_000;

/**
 * The many short readings of one server: those that begin within a few seconds share a lock, for to take one costs more
 * than many an answer.
 */
export class Readings implements AsyncDisposable {
  readonly #layout: Layout;
  #joinable: Promise<Reading> | undefined;
  readonly #timers = new Map<Reading, NodeJS.Timeout>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** Held for some seconds in any case, for whoever is to begin with the rows, and then as long as somebody holds it. */
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
  /** Until it is given back, where that has begun. */
  left: Promise<void> = Promise.resolve();

  constructor(lock: AsyncDisposable) {
    this.#lock = lock;
  }

  /** Keeps the lock until it is disposed of. */
  hold(): Disposable {
    if (this.#readers === 0) return { [Symbol.dispose]: () => {} };
    this.#readers += 1;
    return { [Symbol.dispose]: () => this.leave() };
  }

  leave(): void {
    this.#readers -= 1;
    if (this.#readers > 0) return;
    // what is left of the file is garbage, and collected as such
    this.left = Promise.resolve(this.#lock[Symbol.asyncDispose]()).catch(() => {});
  }
}
