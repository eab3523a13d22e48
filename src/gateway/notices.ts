/** A gateway that says something else each time is not listened to for ever. */
const mostNotices = 1000;

/** What is remarkable of a gateway and no error: each told once, however often it is met. */
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
