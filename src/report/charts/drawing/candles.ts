import type { CandlesRun } from "../chart-data.ts";

/** Several bars as one. */
export interface Candle {
  /** UNIX milliseconds. */
  readonly from: number;
  readonly to: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  /** How many bars it is made of if none is missing. */
  readonly bars: number;
  readonly [field: string]: unknown;
}

/** Joins bars into candles of one length, a whole number of bars, so that there are no more than `most`. */
export function candlesOf(
  { times, intervalMs, open, high, low, close }: CandlesRun["bars"],
  most: number,
): Candle[] {
  const first = times[0] ?? 0;
  const span = (times.at(-1) ?? 0) - first + intervalMs;
  const bars = Math.max(1, Math.ceil(span / intervalMs / most));
  const lengthMs = bars * intervalMs;
  const candles: Candle[] = [];
  let begun = -1;
  for (let index = 0; index < times.length; index++) {
    if (![open, high, low, close].every((prices) => Number.isFinite(prices[index]))) continue;
    const place = Math.floor((times[index]! - first) / lengthMs);
    const last = candles.at(-1);
    if (last === undefined || place !== begun) {
      begun = place;
      candles.push({
        from: first + place * lengthMs,
        to: first + (place + 1) * lengthMs,
        open: open[index]!,
        high: high[index]!,
        low: low[index]!,
        close: close[index]!,
        bars,
      });
      continue;
    }
    candles[candles.length - 1] = {
      ...last,
      high: Math.max(last.high, high[index]!),
      low: Math.min(last.low, low[index]!),
      close: close[index]!,
    };
  }
  return candles;
}
