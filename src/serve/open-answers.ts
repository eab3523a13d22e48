import type { ServerResponse } from "node:http";

/** The answers under way, so that a server can let them end. */
export class OpenAnswers {
  readonly #open = new Set<ServerResponse>();
  #onNone: (() => void) | undefined;

  get size(): number {
    return this.#open.size;
  }

  add(response: ServerResponse): void {
    this.#open.add(response);
    response.once("close", () => {
      this.#open.delete(response);
      if (this.#open.size === 0) this.#onNone?.();
    });
  }

  /** Resolves when none is left, or after that long; gives how many are left then. */
  async ended(withinMs: number): Promise<number> {
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.#onNone = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#open.size;
  }
}
