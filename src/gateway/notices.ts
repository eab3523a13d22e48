/** A gateway that says something else each time must not fill the memory. */
const mostNotices = 1000;

/** Notable facts about a gateway that are not errors, each reported once. */
export class Notices {
  readonly #told = new Set<string>();
  readonly #tell: ((text: string) => void) | undefined;

  constructor(tell: ((text: string) => void) | undefined) {
    this.#tell = tell;
  }

  tell(text: string): void {
    if (this.#told.has(text) || this.#told.size === mostNotices) return;
    this.#told.add(text);
    this.#tell?.(text);
  }
}
