import { formatScaled } from "../../model/fixed-point.ts";
import { type Bar, type BarSource, barMicros } from "./bars.ts";
import { randomFrom } from "./random.ts";

const batchBars = 1024;
/** Half the span of one of a bar's four moves: 0.05 % of the anchor. */
const moveDivisor = 2000;
/** How slowly the price is drawn back to its anchor, in bars; keeps any length of run within a few percent of it. */
const pullDivisor = 4096;

export interface GeneratedBarsOptions {
  readonly seed: string;
  readonly count: number;
  /** Start of the first bar. */
  readonly startMicros: number;
  readonly tickDecimals: number;
  /** The price the walk starts at and is drawn back to, in ticks. */
  readonly anchorTicks: number;
}

/** A random walk in whole ticks around an anchor, one bar a minute without gaps. */
export function generatedBars(options: GeneratedBarsOptions): BarSource {
  const { anchorTicks, count, startMicros, tickDecimals } = options;
  const reach = Math.max(1, Math.floor(anchorTicks / moveDivisor));
  return {
    tickDecimals,
    count,
    firstCloseMicros: startMicros + barMicros,
    typicalTicks: anchorTicks,
    async *batches() {
      const random = randomFrom(`${options.seed} bars`);
      let last = anchorTicks;
      let batch: Bar[] = [];
      for (let index = 1; index <= count; index += 1) {
        const open = last;
        let price = open + Math.floor((anchorTicks - open) / pullDivisor);
        let high = Math.max(open, price);
        let low = Math.min(open, price);
        for (let move = 0; move < 4; move += 1) {
          price = Math.max(10, price + random.below(2 * reach + 1) - reach);
          if (price > high) high = price;
          if (price < low) low = price;
        }
        last = price;
        const volume = formatScaled(random.below(2_000_000), 3);
        const closeMicros = startMicros + index * barMicros;
        batch.push({ closeMicros, closeNanos: 0, open, high, low, close: price, volume });
        if (batch.length === batchBars || index === count) {
          yield batch;
          batch = [];
        }
      }
    },
  };
}
