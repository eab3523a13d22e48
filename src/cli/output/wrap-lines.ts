import { stripVTControlCharacters } from "node:util";

/** Lines that a terminal of so many columns would break in mid-word, broken at blanks and indented; null: as they are. */
export function wrapLines(text: string, columns: number | null): string {
  if (columns === null) return text;
  return text.replace(/.+/g, (line) => {
    const indent = " ".repeat(/^ */.exec(line)![0].length + 4);
    const [first = "", ...rest] = wrapped(line, columns, columns - indent.length);
    return [first, ...rest.map((part) => `${indent}${part}`)].join("\n");
  });
}

/** A text in lines of so many characters, colours not counted, parted at blanks; `first` is the room in the first. */
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
