/** Bytes of two texts from the same position, as far as both pieces reach; empty if a text ended. */
export interface Stretch {
  readonly a: Buffer;
  readonly b: Buffer;
  /** How many leading bytes are equal. */
  readonly same: number;
  /** True for the last stretch of texts that differ. */
  readonly differs: boolean;
}

/**
 * Walks two texts in arbitrary pieces side by side, up to the first difference, or both ends. Holds one piece of each,
 * and reads the second text only as far as the first.
 */
export async function* sideBySide(
  a: AsyncIterable<Uint8Array>,
  b: AsyncIterable<Uint8Array>,
): AsyncGenerator<Stretch> {
  const left = new Side(a);
  const right = new Side(b);
  try {
    for (;;) {
      await left.fill();
      await right.fill();
      if (left.rest.byteLength === 0 && right.rest.byteLength === 0) return;
      const same = commonBytes(left.rest, right.rest);
      const differs = same === 0 || same < Math.min(left.rest.byteLength, right.rest.byteLength);
      yield { a: left.rest, b: right.rest, same, differs };
      if (differs) return;
      left.skip(same);
      right.skip(same);
    }
  } finally {
    await left.close();
    await right.close();
  }
}

/** One of the texts, and the rest of its piece. */
class Side {
  rest: Buffer = Buffer.alloc(0);
  readonly #pieces: AsyncIterator<Uint8Array>;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Makes bytes available, unless the text has ended. */
  async fill(): Promise<void> {
    while (this.rest.byteLength === 0) {
      const next = await this.#pieces.next();
      if (next.done) return;
      this.rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
  }

  skip(bytes: number): void {
    this.rest = this.rest.subarray(bytes);
  }

  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}

/** Length of the common prefix, by bisection. */
function commonBytes(a: Buffer, b: Buffer): number {
  const size = Math.min(a.byteLength, b.byteLength);
  if (a.compare(b, 0, size, 0, size) === 0) return size;
  let from = 0;
  let to = size;
  while (to - from > 1) {
    const middle = (from + to) >> 1;
    if (a.compare(b, from, middle, from, middle) === 0) from = middle;
    else to = middle;
  }
  return from;
}
