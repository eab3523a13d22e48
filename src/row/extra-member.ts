/** What stands ahead of the value of `extra` in a line. */
export const extraKey = ',"extra":';

/** A line in two: the row without `extra`, as a line of its own, and the text of the object that `extra` is. */
export interface SplitLine {
  readonly head: string;
  readonly extra: string;
}

/**
 * Parts a line that ends with the member `extra`; undefined for any other. Whether the two are JSON is not looked into. Inside of
 * a string its quotes would be escaped, so that the first one found is a key.
 */
export function splitExtra(line: string): SplitLine | undefined {
  const at = line.indexOf(`${extraKey}{`);
  if (at < 0 || !line.endsWith("}}")) return undefined;
  return { head: `${line.slice(0, at)}}`, extra: line.slice(at + extraKey.length, -1) };
}
