import { createHash } from "node:crypto";

/** The fingerprint of a table's rows: order-free, with multiplicity. */
export interface RowHash {
  readonly rows: bigint;
  /** Sum of the first 64 bits of the md5 of each canonical line, without its line end. */
  readonly hash: bigint;
}

/** The row hash of canonical lines, given without their line ends; equal to `rowHashSql` over the same rows. */
export async function rowHash(
  lines: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): Promise<RowHash> {
  let rows = 0n;
  let hash = 0n;
  for await (const line of lines) {
    rows += 1n;
    hash += createHash("md5").update(line).digest().readBigUInt64BE(0);
  }
  return { rows, hash };
}
