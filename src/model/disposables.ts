/**
 * Disposes several things, newest first: the parts of AsyncDisposableStack that are needed, because Node 22 lacks it.
 * Each is disposed, whatever fails; the first error is thrown.
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

  /** Moves all of them to a new object. */
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
