/** The length of a generated bar, and the shortest that a file may have, in microseconds. */
export const barMicros = 60_000_000;

/**
 * One bar. Times are whole microseconds since 1970 (exact in a number until the year 2255) plus `closeNanos`, 0 to 999.
 * Prices are whole ticks.
 */
export interface Bar {
  readonly closeMicros: number;
  readonly closeNanos: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  /** Canonical decimal text; empty if the source has no volume. */
  readonly volume: string;
}

/** The bars that a run trades on, in the order of time and at least one bar's length apart. */
export interface BarSource {
  /** A tick is 10^-tickDecimals. */
  readonly tickDecimals: number;
  readonly count: number;
  /** Close of the first bar. */
  readonly firstCloseMicros: number;
  /** The length of a bar, in microseconds. */
  readonly intervalMicros: number;
  /** A typical price in ticks, from which order sizes are chosen. */
  readonly typicalTicks: number;
  /** The bars from the first, in batches; each call starts over. */
  batches(): AsyncIterable<readonly Bar[]>;
}
