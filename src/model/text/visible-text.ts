/**
 * What a terminal obeys, or what hides, turns or ends the text beside it: controls (C0, DEL, C1), formats that are not
 * seen (zero-width, bidirectional), separators of lines and paragraphs, and halves of surrogate pairs.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * A text from outside in one line that says what it is and does nothing: what a terminal would obey is escaped as JSON
 * does, `\n` or `\u001b`. Wherever such a text becomes part of what people read, in whichever stream, it goes through here.
 */
export function visible(text: string): string {
  return text.replace(unseen, escaped);
}

/**
 * The same for a text of several lines that are ours: its line feeds stay. JSON means the same afterwards, for what is
 * escaped can only stand within its strings.
 */
export function visibleLines(text: string): string {
  return text.replace(unseen, (character) => (character === "\n" ? character : escaped(character)));
}

/** The same for lines in which we set colours ourselves: these stay. Parts from outside have been through `visible`. */
export function visibleColouredLines(text: string): string {
  return text
    .split(colour)
    .map((part, index) => (index % 2 === 0 ? visibleLines(part) : part))
    .join("");
}

/** What sets the colour of a text, red, green or yellow, and what ends it. */
const colour = new RegExp(`(${String.fromCharCode(27)}\\[3[1239]m)`);

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return short[character] ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
