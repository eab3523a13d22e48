/**
 * What a server's end waits for: answers in progress, endless answers, which end with it, and remaining work. Node's
 * `close` waits for connections without a limit, and closes the port first.
 */
export class Drain {
  readonly #ending = new AbortController();
  readonly #open = new Set<Promise<unknown>>();

  /** Aborts when the server ends. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size;
  }

  /** Makes the server's end wait for `work`, which ends soon after the signal. */
  add(work: Promise<unknown>): void {
    const done = work.then(
      () => undefined,
      () => undefined,
    );
    this.#open.add(done);
    void done.then(() => this.#open.delete(done));
  }

  /** Ends them and waits for them, or until time is up. Returns how many have not ended. */
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
