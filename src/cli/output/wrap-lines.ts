import { stripVTControlCharacters } from "node:util";

/** Wraps lines at blanks, with indents, at a terminal's width; null leaves them as they are. */
export function wrapLines(text: string, columns: number | null): string {
  if (columns === null) return text;
  return text.replace(/.+/g, (line) => {
    const indent = " ".repeat(/^ */.exec(line)![0].length + 4);
    const [first = "", ...rest] = wrapped(line, columns, columns - indent.length);
    return [first, ...rest.map((part) => `${indent}${part}`)].join("\n");
  });
}

/**
 * A text in lines of so many characters, not counting colours, wrapped at blanks; `first` is the room in the first
 * line.
 */
export function wrapped(text: string, first: number, others = first): string[] {
  const lines: string[] = [];
  let length = 0;
  for (const word of text.split(" ")) {
    const own = stripVTControlCharacters(word).length;
    const room = lines.length > 1 ? others : first;
    if (lines.length === 0 || length + 1 + own > room) {
      lines.push(word);
      length = own;
    } else {
      lines[lines.length - 1] += ` ${word}`;
      length += 1 + own;
    }
  }
  return lines;
}
