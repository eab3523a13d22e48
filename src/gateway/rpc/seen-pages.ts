import { createHash } from "node:crypto";
import type { PageIndex } from "../../row/wire/page-index.ts";
import type { PageLines, WireKey } from "../../row/wire/row-transcoder.ts";

/** The pages and tokens of one reading so far. */
export interface SeenPages {
  /** Whether a page came before; remembers it. */
  hasPage(index: PageIndex, lines: PageLines): boolean;
  hasToken(token: string): boolean;
  addToken(token: string): void;
}

/**
 * Identifies pages by their first key, which is unique: a page that begins like the first or the previous one repeats
 * it. Rows that are merely out of order pass, for their reader to see: an error here would only make it ask again from
 * after them.
 */
export function seenByKey(): SeenPages {
  let start: WireKey | undefined;
  let before: WireKey | undefined;
  return {
    ...seenTokens(),
    hasPage: (_index, { first }) => {
      const isSeen = isSameKey(first, before) || isSameKey(first, start);
      start ??= first;
      before = first ?? before;
      return isSeen;
    },
  };
}

/** Most pages of a single repeated row: more than any run has. */
const mostPagesOfOneRow = 1000;

/**
 * Identifies pages by their bytes. Rows without numbers may be equal, so a page whose rows are all the same may repeat
 * as often as there are such rows.
 */
export function seenByBytes(areNumbered: boolean): SeenPages {
  const pages = new BoundedSet();
  let ofOneRow = 0;
  return {
    ...seenTokens(),
    hasPage: ({ page, places, rows }) => {
      if (rows === 0) return false;
      const row = (i: number) =>
        Buffer.from(page.buffer, page.byteOffset + places[i * 2]!, places[i * 2 + 1]! - places[i * 2]!);
      if (!areNumbered && row(0).equals(row(rows - 1))) {
        ofOneRow += 1;
        return ofOneRow > mostPagesOfOneRow;
      }
      ofOneRow = 0;
      const hash = createHash("sha1");
      // rows follow each other, with a tag and a length between them
      hash.update(page.subarray(places[0]!, places[rows * 2 - 1]!));
      return !pages.add(hash.digest("base64"));
    },
  };
}

function seenTokens(): Pick<SeenPages, "hasToken" | "addToken"> {
  const tokens = new BoundedSet();
  const markOf = (token: string) => createHash("sha1").update(token).digest("base64");
  return {
    hasToken: (token) => tokens.has(markOf(token)),
    addToken: (token) => {
      tokens.add(markOf(token));
    },
  };
}

/** Most marks that are kept, some ten megabytes: a table has a page for each few thousand rows. */
const mostMarks = 100_000;

class BoundedSet {
  readonly #marks = new Set<string>();

  has(mark: string): boolean {
    return this.#marks.has(mark);
  }

  /** False if it was already there. */
  add(mark: string): boolean {
    if (this.#marks.has(mark)) return false;
    if (this.#marks.size < mostMarks) this.#marks.add(mark);
    return true;
  }
}

function isSameKey(a: WireKey | undefined, b: WireKey | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.tsHigh === b.tsHigh && a.tsLow === b.tsLow && a.seqHigh === b.seqHigh && a.seqLow === b.seqLow;
}
