import { hash } from "node:crypto";
import { eachLine, type GroupRow } from "./table-asks.ts";

/** How often each line occurs, by digest: this tells rows without a seq apart. */
export type LineBag = ReadonlyMap<string, number>;

export function bagOfText(text: Buffer): LineBag {
  return bagOf(eachLine(text));
}

/** Leaves out lines that are not rows. */
export function bagOfRows(rows: readonly (GroupRow | undefined)[]): LineBag {
  return bagOf(rows.flatMap((row) => (row === undefined ? [] : [row.line])));
}

function bagOf(lines: Iterable<Uint8Array>): LineBag {
  const bag = new Map<string, number>();
  for (const line of lines) {
    const digest = hash("sha256", line, "base64");
    bag.set(digest, (bag.get(digest) ?? 0) + 1);
  }
  return bag;
}

/** True if `other` has each line at least as many times. */
export function isWithinBag(lines: LineBag, other: LineBag): boolean {
  for (const [digest, times] of lines) if ((other.get(digest) ?? 0) < times) return false;
  return true;
}

export function isSameBag(one: LineBag, other: LineBag): boolean {
  return one.size === other.size && isWithinBag(one, other) && isWithinBag(other, one);
}
