import { hash } from "node:crypto";

/** Identifies a multiset of rows, independent of order. Hashes of rows in adjacent windows add up. */
export interface RowHash {
  readonly rows: bigint;
  /** Sum of `lineHash` over the rows. */
  readonly hash: bigint;
}

/** The first 64 bits of the MD5 of a row's canonical line, given without its line end. */
export function lineHash(line: string | Uint8Array): bigint {
  return hash("md5", line, "buffer").readBigUInt64BE(0);
}

/** The row hash of canonical lines, given without their line ends; equal to `rowHashSql` over the same rows. */
export async function rowHash(
  lines: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): Promise<RowHash> {
  let rows = 0n;
  let sum = 0n;
  for await (const line of lines) {
    rows += 1n;
    sum += lineHash(line);
  }
  return { rows, hash: sum };
}

const lineEnd = 10;

/** The row hash of NDJSON whose lines are canonical, in chunks cut anywhere. A last line without its end is a row too. */
export async function textRowHash(chunks: AsyncIterable<Uint8Array>): Promise<RowHash> {
  let rows = 0n;
  let sum = 0n;
  let rest: Uint8Array = Buffer.alloc(0);
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, start)) {
      const line = chunk.subarray(start, end);
      sum += lineHash(rest.byteLength === 0 ? line : Buffer.concat([rest, line]));
      rows += 1n;
      rest = Buffer.alloc(0);
      start = end + 1;
    }
    if (start < chunk.byteLength) rest = Buffer.concat([rest, chunk.subarray(start)]);
  }
  if (rest.byteLength > 0) {
    sum += lineHash(rest);
    rows += 1n;
  }
  return { rows, hash: sum };
}
