/** How large a group may get, and how long it waits for more. */
export interface GatheringLimits<T> {
  /** The total weight at which the group is acted on. */
  readonly most: number;
  /** The weight of one item. Default: 1. */
  readonly weightOf?: (item: T) => number;
  /** How many milliseconds to wait for another item after the last one. Asked again for each. */
  readonly pauseMs: () => number;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers items from many callers to act on them together, where that is cheaper than one by one. Each caller waits until
 * enough have joined, or until none has for a while. One group at a time: later items go into the next.
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

  /** `act` returns for each item a function that gives its result or throws; if `act` itself fails, all items fail. */
  constructor(act: (items: readonly T[]) => Promise<readonly (() => R)[]>, limits: GatheringLimits<T>) {
    this.#act = act;
    this.#limits = limits;
  }

  /** Throws the signal's reason if it aborts before the act begins. */
  async join(item: T, signal?: AbortSignal): Promise<R> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    const waiting = { item, resolve, reject };
    const leave = () => {
      // a group that has begun keeps all its items: their files are being written
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

  #wait(): void {
    clearTimeout(this.#timer);
    const { most, pauseMs } = this.#limits;
    if (this.#weight >= most) this.#begin();
    else this.#timer = setTimeout(() => this.#begin(), pauseMs());
  }

  #weightOf(item: T): number {
    return this.#limits.weightOf?.(item) ?? 1;
  }

  /** Asks for the pause again, because what it depends on has changed. */
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
