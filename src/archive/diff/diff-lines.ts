import { sideBySide } from "../../model/text/side-by-side.ts";
import { shownLines } from "../../row/shown-line.ts";

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
  let lines = 0;
  for await (const { a: left, b: right, same, differs } of sideBySide(a, b)) {
    if (!differs) {
      lines += countNewlines(left.subarray(0, same));
      continue;
    }
    // pieces hold whole lines, and so far both sides are equal: the line starts in this piece on both
    const start = same === 0 ? 0 : left.lastIndexOf(newline, same - 1) + 1;
    const [inA, inB] = shownLines(lineAt(left, start), lineAt(right, start));
    return { line: lines + countNewlines(left.subarray(0, start)) + 1, a: inA, b: inB };
  }
  return null;
}

function lineAt(piece: Buffer, start: number): string | null {
  if (start >= piece.byteLength) return null;
  const end = piece.indexOf(newline, start);
  return piece.toString("utf8", start, end < 0 ? piece.byteLength : end);
}

function countNewlines(text: Buffer): number {
  let count = 0;
  for (let at = text.indexOf(newline); at >= 0; at = text.indexOf(newline, at + 1)) count++;
  return count;
}
