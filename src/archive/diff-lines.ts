import { shownLines } from "./shown-line.ts";

const newline = 10;

/** The first line in which two texts differ; null is a side that has no such line. */
export interface LineDifference {
  /** Number of the line, from 1. */
  readonly line: number;
  /** The line's text on each side, cut to 300 characters around the difference. */
  readonly a: string | null;
  readonly b: string | null;
}

/**
 * Compares two texts that come in pieces of whole lines, cut anywhere between lines. Null when they are equal byte for
 * byte. Holds one piece of each side.
 */
export async function firstDifference(
  a: AsyncIterable<Uint8Array>,
  b: AsyncIterable<Uint8Array>,
): Promise<LineDifference | null> {
  const left = new Cursor(a);
  const right = new Cursor(b);
  let lines = 0;
  try {
    for (;;) {
      const [leftMore, rightMore] = [await left.fill(), await right.fill()];
      if (!leftMore && !rightMore) return null;
      if (!leftMore || !rightMore) return difference(lines + 1, left, right, 0);
      const length = Math.min(left.piece.byteLength, right.piece.byteLength);
      const at = differsAt(left.piece.subarray(0, length), right.piece.subarray(0, length));
      if (at >= 0) {
        // pieces hold whole lines, and so far both sides are equal: the line starts in this piece on both
        const start = at === 0 ? 0 : left.piece.lastIndexOf(newline, at - 1) + 1;
        return difference(lines + countNewlines(left.piece.subarray(0, start)) + 1, left, right, start);
      }
      lines += countNewlines(left.piece.subarray(0, length));
      left.skip(length);
      right.skip(length);
    }
  } finally {
    await left.close();
    await right.close();
  }
}

function difference(line: number, left: Cursor, right: Cursor, start: number): LineDifference {
  const [a, b] = shownLines(left.lineAt(start), right.lineAt(start));
  return { line, a, b };
}

class Cursor {
  piece: Buffer = Buffer.alloc(0);
  readonly #pieces: AsyncIterator<Uint8Array>;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Sees to it that the piece has bytes; false at the end. */
  async fill(): Promise<boolean> {
    while (this.piece.byteLength === 0) {
      const next = await this.#pieces.next();
      if (next.done) return false;
      this.piece = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    return true;
  }

  skip(bytes: number): void {
    this.piece = this.piece.subarray(bytes);
  }

  lineAt(start: number): string | null {
    if (start >= this.piece.byteLength) return null;
    const end = this.piece.indexOf(newline, start);
    return this.piece.toString("utf8", start, end < 0 ? this.piece.byteLength : end);
  }

  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}

/** Index of the first byte that differs, -1 for equal texts of equal length: halves until the half is small. */
function differsAt(a: Buffer, b: Buffer): number {
  if (a.equals(b)) return -1;
  let from = 0;
  let to = a.byteLength;
  while (to - from > 1) {
    const middle = (from + to) >> 1;
    if (a.subarray(from, middle).equals(b.subarray(from, middle))) from = middle;
    else to = middle;
  }
  return from;
}

function countNewlines(text: Buffer): number {
  let count = 0;
  for (let at = text.indexOf(newline); at >= 0; at = text.indexOf(newline, at + 1)) count++;
  return count;
}
