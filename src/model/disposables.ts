/**
 * Disposes of several things, the newest first, when it is disposed of itself: AsyncDisposableStack as far as it is
 * needed, which Node 22 does not have. Each is disposed of, whatever fails; the first error is thrown.
 */
export class Disposables implements AsyncDisposable {
  #all: (() => PromiseLike<void> | void)[] = [];

  use<T extends AsyncDisposable>(one: T): T {
    this.defer(() => one[Symbol.asyncDispose]());
    return one;
  }

  defer(dispose: () => PromiseLike<void> | void): void {
    this.#all.push(dispose);
  }

  /** Hands all of them over to another, which this one then knows nothing of. */
  move(): Disposables {
    const moved = new Disposables();
    [moved.#all, this.#all] = [this.#all, []];
    return moved;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (const dispose of this.move().#all.reverse()) {
      try {
        await dispose();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
