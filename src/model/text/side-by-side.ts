/** Bytes of two texts from the same place on: as far as the pieces go that both have there; empty where a text ended. */
export interface Stretch {
  readonly a: Buffer;
  readonly b: Buffer;
  /** How many bytes they have in common, from the first. */
  readonly same: number;
  /** True for the last one of texts that differ: neither the rest of both nor the end of one is the same. */
  readonly differs: boolean;
}

/**
 * Walks two texts, which come in pieces cut anywhere, side by side: up to the first stretch in which they differ, or to
 * the end of both. Holds one piece of each; the second text is asked for a piece only where the first has one, or ended.
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

/** One of the texts, and what is left of its piece. */
class Side {
  rest: Buffer = Buffer.alloc(0);
  readonly #pieces: AsyncIterator<Uint8Array>;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Sees to it that there are bytes, unless the text ended. */
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

/** Bytes that two texts have in common from the beginning: halves what differs until the half is small. */
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
