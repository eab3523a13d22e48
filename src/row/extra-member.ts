/** What stands before the value of `extra` in a line. */
export const extraKey = ',"extra":';

/** A line split in two: the row without `extra`, as a separate line, and the text of the object in `extra`. */
export interface SplitLine {
  readonly head: string;
  readonly extra: string;
}

/**
 * Splits a line that ends with the member `extra`; undefined for any other. Does not check that the parts are JSON.
 * Quotes inside a string would be escaped, so the first match is a key.
 */
export function splitExtra(line: string): SplitLine | undefined {
  const at = line.indexOf(`${extraKey}{`);
  if (at < 0 || !line.endsWith("}}")) return undefined;
  return { head: `${line.slice(0, at)}}`, extra: line.slice(at + extraKey.length, -1) };
}
