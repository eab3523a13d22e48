import { lineTooLong, longestLineBytes } from "../../../row/line.ts";

const lineFeed = 0x0a;

/** The first rows, one per line; all without a number. The rest is not requested. */
export async function* takeRows(
  chunks: AsyncIterable<Uint8Array>,
  most: number | undefined,
): AsyncGenerator<Uint8Array, undefined> {
  if (most === undefined) {
    yield* chunks;
    return undefined;
  }
  let left = most;
  if (left === 0) return;
  for await (const chunk of chunks) {
    let end = 0;
    while (left > 0) {
      const found = chunk.indexOf(lineFeed, end);
      if (found < 0) break;
      end = found + 1;
      left--;
    }
    yield left === 0 ? chunk.subarray(0, end) : chunk;
    if (left === 0) return;
  }
}

/** The same bytes in chunks of whole lines. Throws `line_too_long` for a line over 16 MiB. */
export async function* wholeLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end === 0) {
      rest.push(chunk);
      restBytes += chunk.length;
      if (restBytes > longestLineBytes) {
        throw lineTooLong("row");
      }
      continue;
    }
    const lines = chunk.subarray(0, end);
    yield rest.length === 0 ? lines : Buffer.concat([...rest, lines]);
    rest = end === chunk.length ? [] : [chunk.subarray(end)];
    restBytes = chunk.length - end;
  }
  if (rest.length > 0) yield Buffer.concat(rest);
}
