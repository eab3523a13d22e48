/**
 * The largest width of a text in px, without a font to measure it: widths of DejaVu Sans, the widest of the usual
 * system fonts. The same everywhere, so that charts are, too.
 */
export function textWidth(text: string, fontSize: number): number {
  let ems = 0;
  for (const character of text) ems += emsOf(character);
  return Math.ceil(ems * fontSize);
}

/** The text, shortened with an ellipsis if it is wider. */
export function textWithin(text: string, fontSize: number, width: number): string {
  if (textWidth(text, fontSize) <= width) return text;
  let cut = "";
  for (const character of text) {
    if (textWidth(`${cut}${character}…`, fontSize) > width) break;
    cut += character;
  }
  return `${cut.trimEnd()}…`;
}

function emsOf(character: string): number {
  if (/[ .,:;'’|ijlI!()[\]/]/.test(character)) return 0.4;
  if (/[mwMW%@…—]/.test(character)) return 1;
  if (/[A-Z−+=<>~]/.test(character)) return 0.84 - (/[A-Z]/.test(character) ? 0.08 : 0);
  if (/[\u0020-\u024f–]/.test(character)) return 0.64;
  return 1.1;
}
