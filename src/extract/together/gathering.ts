/** How many gather, and for how long. */
export interface GatheringLimits<T> {
  /** It is acted once those who wait weigh so much. */
  readonly most: number;
  /** The weight of one item. Default: 1. */
  readonly weightOf?: (item: T) => number;
  /** How long, in milliseconds, the last who came is waited behind for another. Asked anew for each. */
  readonly pauseMs: () => number;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * What many want done, each for itself, and what costs the less the more of it is done at once. Whoever joins waits until
 * enough have, or until nobody else came for a while. One act at a time: who comes meanwhile is of the next.
 */
export class Gathering<T, R> {
  readonly #act: (items: readonly T[]) => Promise<readonly (() => R)[]>;
  readonly #limits: GatheringLimits<T>;
  #waiting: Waiting<T, R>[] = [];
  /** The total weight of the waiting items. */
  #weight = 0;
  #timer: NodeJS.Timeout | undefined;
  #acting = false;
  #isDue = false;

  /** `act` gives for each item what its result comes from, which may throw; where it fails itself, all items have failed. */
  constructor(act: (items: readonly T[]) => Promise<readonly (() => R)[]>, limits: GatheringLimits<T>) {
    this.#act = act;
    this.#limits = limits;
  }

  /** Throws the signal's reason where it aborts before the act begins. */
  async join(item: T, signal?: AbortSignal): Promise<R> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    const waiting = { item, resolve, reject };
    const leave = () => {
      // what has begun with it ends with it: its files are being written
      if (!this.#waiting.includes(waiting)) return;
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
      this.#weight -= this.#weightOf(item);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    this.#waiting.push(waiting);
    this.#weight += this.#weightOf(item);
    this.#wait();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  /** Has the pause counted anew: nobody else may be coming by now. */
  #wait(): void {
    clearTimeout(this.#timer);
    const { most, pauseMs } = this.#limits;
    if (this.#weight >= most) this.#begin();
    else this.#timer = setTimeout(() => this.#begin(), pauseMs());
  }

  #weightOf(item: T): number {
    return this.#limits.weightOf?.(item) ?? 1;
  }

  /** The pause is asked for again: what it went by has changed. */
  hurry(): void {
    if (this.#waiting.length > 0 && !this.#acting) this.#wait();
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#isDue = true;
    if (!this.#acting) void this.#actOnAll();
  }

  async #actOnAll(): Promise<void> {
    this.#acting = true;
    while (this.#isDue && this.#waiting.length > 0) {
      this.#isDue = false;
      const together = this.#waiting;
      this.#waiting = [];
      this.#weight = 0;
      try {
        const results = await this.#act(together.map(({ item }) => item));
        for (const [index, { resolve, reject }] of together.entries()) {
          try {
            resolve(results[index]!());
          } catch (error) {
            reject(error);
          }
        }
      } catch (error) {
        for (const { reject } of together) reject(error);
      }
    }
    this.#isDue = false;
    this.#acting = false;
    if (this.#waiting.length > 0) this.#wait();
  }
}
