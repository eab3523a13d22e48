/**
 * What the end of a server waits for: answers under way, those without an end of their own, which end when it does, and
 * work to finish. Node's `close` waits for connections, without a limit, and takes the port away first.
 */
export class Drain {
  readonly #ending = new AbortController();
  readonly #open = new Set<Promise<unknown>>();

  /** Fires when the server ends. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size;
  }

  /** Keeps the end of the server waiting for `work`, which ends soon after the signal. */
  add(work: Promise<unknown>): void {
    const done = work.then(
      () => undefined,
      () => undefined,
    );
    this.#open.add(done);
    void done.then(() => this.#open.delete(done));
  }

  /** Ends them, and waits until they have or the time is over. Gives how many have not. */
  async end(withinMs: number): Promise<number> {
    this.#ending.abort("the server is stopping");
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([Promise.all(this.#open), late]);
    clearTimeout(timer);
    return this.size;
  }
}
