import type { ClipSide } from "../written-bounds.ts";
import { wholeLines } from "./take-rows.ts";

const lineFeed = 0x0a;
const timeKey = Buffer.from('"ts_event":"');
/** Beyond this, doubles cannot tell two nanoseconds apart. */
const doubleStep = 2048;

/** The time in a canonical line, as text; undefined if it has none. */
export function timeIn(lines: Buffer, start: number, end: number): string | undefined {
  const key = lines.indexOf(timeKey, start);
  if (key < 0 || key >= end) return undefined;
  const from = key + timeKey.length;
  const to = lines.indexOf(0x22, from);
  return to < 0 || to > end ? undefined : lines.toString("latin1", from, to);
}

/** The same bytes as a Buffer. */
export function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/**
 * Drops canonical lines that came only because the bounds were widened. A row even farther out is passed on for the
 * caller to refuse, and so is a line without a time. If the route has an order, chunks whose first and last lines are
 * inside are passed whole: a line outside between them would be out of order, which is refused as well.
 */
export async function* clipRows(
  chunks: AsyncIterable<Uint8Array>,
  clipFrom: ClipSide | undefined,
  clipTo: ClipSide | undefined,
  isOrdered: boolean,
): AsyncGenerator<Uint8Array, undefined> {
  if (clipFrom === undefined && clipTo === undefined) {
    yield* chunks;
    return undefined;
  }
  const below = clipFrom === undefined ? undefined : Number(clipFrom.bound);
  const above = clipTo === undefined ? undefined : Number(clipTo.bound);
  const isClipped = (text: string) => {
    const about = Number(text);
    const mayBeBelow = below !== undefined && about < below + doubleStep;
    const mayBeAbove = above !== undefined && about > above - doubleStep;
    if ((!mayBeBelow && !mayBeAbove) || !/^-?\d{1,19}$/.test(text)) return false;
    const time = BigInt(text);
    if (clipFrom !== undefined && time < clipFrom.bound)
      return clipFrom.farthest === undefined || time >= clipFrom.farthest;
    if (clipTo !== undefined && time >= clipTo.bound)
      return clipTo.farthest === undefined || time <= clipTo.farthest;
    return false;
  };
  const isWithin = (time: string | undefined) =>
    time !== undefined && /^-?\d{1,19}$/.test(time) && isInside(BigInt(time));
  const isInside = (time: bigint) =>
    (clipFrom === undefined || time >= clipFrom.bound) && (clipTo === undefined || time < clipTo.bound);
  for await (const chunk of wholeLines(chunks)) {
    const lines = asBuffer(chunk);
    const lastLine = lines.lastIndexOf(lineFeed, -2) + 1;
    if (
      isOrdered &&
      isWithin(timeIn(lines, 0, lines.length)) &&
      isWithin(timeIn(lines, lastLine, lines.length))
    ) {
      yield lines;
      continue;
    }
    const kept: Uint8Array[] = [];
    let from = 0;
    for (let start = 0; start < lines.length; ) {
      const found = lines.indexOf(lineFeed, start);
      const end = found < 0 ? lines.length : found + 1;
      const time = timeIn(lines, start, end);
      if (time !== undefined && isClipped(time)) {
        if (start > from) kept.push(lines.subarray(from, start));
        from = end;
      }
      start = end;
    }
    if (from < lines.length) kept.push(lines.subarray(from));
    yield* kept;
  }
}
