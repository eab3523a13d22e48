/** Lets many use a thing side by side, or one have it alone. A caller waiting to have it alone goes before later ones. */
export class SharedUse {
  #users = 0;
  /** Settles when the last caller to ask for it alone is done; null if there is none. */
  #alone: Promise<void> | null = null;
  #left = Promise.withResolvers<void>();

  async shared<R>(use: () => Promise<R>): Promise<R> {
    while (this.#alone !== null) await this.#alone;
    this.#users++;
    try {
      return await use();
    } finally {
      this.#users--;
      this.#left.resolve();
    }
  }

  async alone<R>(use: () => Promise<R>): Promise<R> {
    const before = this.#alone;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#alone = promise;
    await before;
    try {
      while (this.#users > 0) {
        this.#left = Promise.withResolvers();
        await this.#left.promise;
      }
      return await use();
    } finally {
      if (this.#alone === promise) this.#alone = null;
      resolve();
    }
  }
}
