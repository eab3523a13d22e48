/** A noun after a count: `row` after 1, otherwise `rows`. */
export function plural(count: number | bigint, noun: string): string {
  return Number(count) === 1 ? noun : `${noun}s`;
}

/** The word for a count: `is` for 1, otherwise `are`. */
export function agreeing(count: number | bigint, one: string, other: string): string {
  return Number(count) === 1 ? one : other;
}

/** A count and its noun: `1 row`, `2 rows`. */
export function countText(count: number | bigint, noun: string): string {
  return `${count} ${plural(count, noun)}`;
}
