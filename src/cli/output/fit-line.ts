import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Columns that a text takes on a terminal: wide characters take two. */
export function columnsOf(text: string): number {
  // loaded late: most commands fit nothing
  const stringWidth = require("string-width") as typeof import("string-width");
  return stringWidth(text);
}

/**
 * Cuts a name to at most so many columns. The cut is in the middle, shown as `…`, because names often begin or end
 * alike.
 */
export function cutMiddle(name: string, columns: number): string {
  if (columnsOf(name) <= columns) return name;
  if (columns < 1) return "";
  const characters = Array.from(new Intl.Segmenter().segment(name), ({ segment }) => segment);
  const end = fitting(characters.toReversed(), Math.ceil((columns - 1) / 2))
    .reverse()
    .join("");
  const start = fitting(characters, columns - 1 - columnsOf(end)).join("");
  return `${start}…${end}`;
}

/** The first characters, as many as fit. */
function fitting(characters: readonly string[], columns: number): string[] {
  let taken = 0;
  const first: string[] = [];
  for (const character of characters) {
    taken += columnsOf(character);
    if (taken > columns) break;
    first.push(character);
  }
  return first;
}
