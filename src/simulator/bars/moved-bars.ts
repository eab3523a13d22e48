import type { BarSource } from "./bars.ts";

/** The same bars, moved in time by whole microseconds so that the first of them opens at `startMicros`. */
export function movedBars(bars: BarSource, startMicros: number): BarSource {
  const moved = startMicros + bars.intervalMicros - bars.firstCloseMicros;
  return {
    ...bars,
    firstCloseMicros: startMicros + bars.intervalMicros,
    async *batches() {
      for await (const batch of bars.batches()) {
        yield batch.map((bar) => ({ ...bar, closeMicros: bar.closeMicros + moved }));
      }
    },
  };
}
