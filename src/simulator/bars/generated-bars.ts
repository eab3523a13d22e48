import { randomFrom } from "../world/random.ts";
import { type Bar, type BarSource, barMicros } from "./bars.ts";
import { priceWalk } from "./price-walk.ts";

const batchBars = 1024;

export interface GeneratedBarsOptions {
  readonly seed: string;
  readonly count: number;
  /** Start of the first bar. */
  readonly startMicros: number;
  readonly tickDecimals: number;
  /** The price at which the walk starts and to which it is drawn back, in ticks. */
  readonly anchorTicks: number;
}

/** A random walk in whole ticks around an anchor, with one bar a minute and no gaps. */
export function generatedBars(options: GeneratedBarsOptions): BarSource {
  const { anchorTicks, count, startMicros, tickDecimals } = options;
  return {
    tickDecimals,
    count,
    firstCloseMicros: startMicros + barMicros,
    intervalMicros: barMicros,
    typicalTicks: anchorTicks,
    async *batches() {
      const walk = priceWalk(randomFrom(`${options.seed} bars`), anchorTicks);
      let batch: Bar[] = [];
      for (let index = 1; index <= count; index += 1) {
        batch.push({ closeMicros: startMicros + index * barMicros, closeNanos: 0, ...walk() });
        if (batch.length === batchBars || index === count) {
          yield batch;
          batch = [];
        }
      }
    },
  };
}
