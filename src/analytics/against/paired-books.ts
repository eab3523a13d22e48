import type { AccountKey } from "../reconcile/account-key.ts";

/** A portfolio of an account. */
export type Book = Pick<AccountKey, "account" | "portfolio">;

/**
 * The pairs of books to compare, as indexes into the lists; each has at most one counterpart. First those with the same
 * account and portfolio; then, of the rest, those with the same portfolio if there is one on each side, because a
 * backtest's account has another name; finally the last two.
 */
export function pairBooks(
  here: readonly Book[],
  there: readonly Book[],
): readonly (readonly [number, number])[] {
  const pairs: (readonly [number, number])[] = [];
  const pair = (isSame: (a: Book, b: Book) => boolean) => {
    const [leftHere, leftThere] = [leftOf(here, pairs, 0), leftOf(there, pairs, 1)];
    for (const own of leftHere) {
      const others = leftThere.filter((other) => isSame(here[own]!, there[other]!));
      const back = leftHere.filter((one) => others.some((other) => isSame(here[one]!, there[other]!)));
      if (others.length === 1 && back.length === 1) pairs.push([own, others[0]!]);
    }
  };
  pair((a, b) => a.account === b.account && a.portfolio === b.portfolio);
  pair((a, b) => a.portfolio === b.portfolio);
  pair(() => true);
  return pairs;
}

function leftOf(
  books: readonly Book[],
  pairs: readonly (readonly [number, number])[],
  side: 0 | 1,
): number[] {
  const paired = new Set(pairs.map((pair) => pair[side]));
  return [...books.keys()].filter((book) => !paired.has(book));
}

/** Every book of a run once, in the order of their names. */
export function booksOf(keys: Iterable<Book>): Book[] {
  const found = new Map<string, Book>();
  for (const { account, portfolio } of keys) {
    found.set(JSON.stringify([account, portfolio]), { account, portfolio });
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, book]) => book);
}
