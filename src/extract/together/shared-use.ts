/** Something that many use side by side, and that one at times must have alone. Who wants it alone comes before later ones. */
export class SharedUse {
  #users = 0;
  /** The last who wants it alone, or has it; null where nobody does. */
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
