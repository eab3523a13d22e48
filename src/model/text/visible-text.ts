/**
 * Characters that control a terminal, or hide, reverse or end neighbouring text: controls (C0, DEL, C1), invisible
 * formats (zero-width, bidirectional), line and paragraph separators, and halves of surrogate pairs.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * A text from outside on one line, made harmless: control characters are escaped as in JSON, `\n` or `\u001b`. Every
 * such text in output for people goes through here, in any stream.
 */
export function visible(text: string): string {
  return text.replace(unseen, escaped);
}

/**
 * The same for our own text of several lines: its line feeds stay. JSON keeps its meaning, because escaped characters
 * can only be in its strings.
 */
export function visibleLines(text: string): string {
  return text.replace(unseen, (character) => (character === "\n" ? character : escaped(character)));
}

/** The same for lines with our own colours, which stay. Parts from outside must have been through `visible`. */
export function visibleColouredLines(text: string): string {
  return text
    .split(colour)
    .map((part, index) => (index % 2 === 0 ? visibleLines(part) : part))
    .join("");
}

/** Codes that set a colour (red, green or yellow), and that reset it. */
const colour = new RegExp(`(${String.fromCharCode(27)}\\[3[1239]m)`);

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return short[character] ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
