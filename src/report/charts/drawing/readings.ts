import { countText } from "./number-text.ts";

/** A line of a chart whose values are read off: times rising, UNIX milliseconds. */
export interface ReadLine {
  readonly times: Float64Array;
}

/** The most rows that a table under a chart has. */
export const mostRows = 60;

/**
 * Times at which the lines of a chart are read off for its table: those of their points if these are few, otherwise
 * about sixty of them, evenly spread, including the first and the last.
 */
export function readingTimes(lines: readonly ReadLine[]): number[] {
  const filled = lines.filter(({ times }) => times.length > 0);
  if (filled.reduce((sum, { times }) => sum + times.length, 0) <= mostRows) {
    return [...new Set(filled.flatMap(({ times }) => [...times]))].sort((a, b) => a - b);
  }
  const from = Math.min(...filled.map(({ times }) => times[0]!));
  const to = Math.max(...filled.map(({ times }) => times.at(-1)!));
  const picked = new Set<number>();
  for (let row = 0; row < mostRows; row++) {
    const wanted = row === mostRows - 1 ? to : from + ((to - from) * row) / (mostRows - 1);
    picked.add(
      Math.max(...filled.map(({ times }) => times[indexAt(times, wanted)] ?? Number.NEGATIVE_INFINITY)),
    );
  }
  return [...picked];
}

/** The index of the last point at or before a time; -1 if there is none. */
export function indexAt(times: Float64Array, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The first sixty rows of a table. */
export function firstRows<Row>(rows: readonly Row[], noun: string): { rows: readonly Row[]; note: string } {
  const first = rows.slice(0, mostRows);
  return { rows: first, note: rowsNote(first.length, rows.length, noun) };
}

/** The note of a table that does not show all rows; empty if it does. */
export function rowsNote(shown: number, all: number, noun: string): string {
  return shown >= all ? "" : `${countText(shown)} of ${countText(all)} ${noun}.`;
}
