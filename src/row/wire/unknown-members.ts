import { malformed, type WireCursor } from "./wire-cursor.ts";

/** Fields unknown to a message's descriptor, by number, with their original bytes, tags included. */
export type UnknownPieces = Map<number, Uint8Array[]>;

/** Most of them in a row: usually there are a few. Each takes objects of hundreds of times its bytes on the wire. */
const mostUnknown = 1000;

/** Steps over the unknown field at the cursor, the `count`th of its row, and keeps it. Throws `malformed_row`. */
export function keepUnknown(
  unknown: UnknownPieces,
  cursor: WireCursor,
  page: Uint8Array,
  count: number,
): void {
  if (count > mostUnknown) throw malformed(`a row has more than ${mostUnknown} unknown fields`);
  cursor.skip();
  const pieces = unknown.get(cursor.number) ?? [];
  pieces.push(page.subarray(cursor.tagAt, cursor.pos));
  unknown.set(cursor.number, pieces);
}

/** A line's members for them: each under `#` and its number, in base64. */
export function unknownMembers(unknown: UnknownPieces): string {
  return [...unknown]
    .sort(([a], [b]) => a - b)
    .map(([number, pieces]) => `"#${number}":"${Buffer.concat(pieces).toString("base64")}"`)
    .join(",");
}
