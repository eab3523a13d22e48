/** A noun as it stands behind a count: `row` behind 1, `rows` behind any other. */
export function plural(count: number | bigint, noun: string): string {
  return Number(count) === 1 ? noun : `${noun}s`;
}

/** What goes with a count: `is` with 1, `are` with any other. */
export function agreeing(count: number | bigint, one: string, other: string): string {
  return Number(count) === 1 ? one : other;
}

/** A count and its noun: `1 row`, `2 rows`. */
export function countText(count: number | bigint, noun: string): string {
  return `${count} ${plural(count, noun)}`;
}
