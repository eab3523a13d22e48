import { reduceLine } from "./reduce-line.ts";

/** A point of a line; a value of null is a gap. */
export interface LineRow {
  readonly t: number;
  readonly v: number | null;
  // required by vega-lite's type for data
  readonly [field: string]: unknown;
}

/** The visible points of a line, as vega's rows. */
export function lineRows(
  times: Float64Array,
  values: Float64Array,
  span: { readonly from: number; readonly to: number; readonly columns: number },
): LineRow[] {
  return Array.from(reduceLine(times, values, span), (index) => {
    const value = values[index]!;
    return { t: times[index]!, v: Number.isFinite(value) ? value : null };
  });
}

/** From the first point of all lines to the last. */
export function linesSpan(lines: readonly { readonly times: Float64Array }[]): { from: number; to: number } {
  const filled = lines.filter(({ times }) => times.length > 0);
  return {
    from: Math.min(...filled.map(({ times }) => times[0]!)),
    to: Math.max(...filled.map(({ times }) => times.at(-1)!)),
  };
}
