import { formatScaled } from "../../model/fixed-point.ts";
import type { Bar } from "../bars/bars.ts";
import type { Random } from "./random.ts";
import type { RowSink, RunPlan } from "./run-plan.ts";

/** The number of bars from one snapshot of the order book to the next. */
const snapshotBars = 5;
const bookLevels = 5;

/**
 * Emits rows that depend only on the market: the bar, and sometimes a snapshot of the book around its close, with
 * the run's next snapshot number.
 */
export function marketRows(
  plan: RunPlan,
  symbol: string,
  random: Random,
  nextSnapshot: () => number,
  emit: RowSink,
): (bar: Bar, index: number) => void {
  const { tickDecimals, intervalMicros } = plan.bars;
  const scope = `"account":"","portfolio":"","venue":${JSON.stringify(plan.venue)},"symbol":${JSON.stringify(symbol)},`;
  const barHead = `"resource_key":${JSON.stringify(`bars.${plan.venue}.${symbol}.${intervalName(intervalMicros)}`)},${scope}"interval_ns":"${intervalMicros}000","ts_open":"`;
  const bookHead = `"resource_key":${JSON.stringify(`book.${plan.venue}.${symbol}`)},${scope}"snapshot_id":"`;
  const price = (ticks: number): string => formatScaled(ticks, tickDecimals);
  return (bar, index) => {
    const nanos = String(bar.closeNanos).padStart(3, "0");
    emit(
      "bars",
      bar.closeMicros,
      bar.closeNanos,
      `${barHead}${bar.closeMicros - intervalMicros}${nanos}","open":"${price(bar.open)}","high":"${price(bar.high)}","low":"${price(bar.low)}","close":"${price(bar.close)}","volume":"${bar.volume}"}`,
    );
    if (index % snapshotBars !== 0) return;
    const snapshot = nextSnapshot();
    for (const side of ["BID", "ASK"]) {
      for (let level = 0; level < bookLevels; level += 1) {
        const ticks = side === "BID" ? bar.close - 1 - level : bar.close + 1 + level;
        // there is no bid below the first tick
        if (ticks <= 0) continue;
        const lots = 1 + random.below(100_000);
        emit(
          "order_book",
          bar.closeMicros,
          bar.closeNanos,
          `${bookHead}${snapshot}","side":"${side}","level":${level},"price":"${price(ticks)}","quantity":"${formatScaled(lots, plan.lotDecimals)}","order_count":${1 + random.below(40)}}`,
        );
      }
    }
  };
}

/** The length of a bar as in resource keys: `1m`, `4h`, `1d`. */
function intervalName(micros: number): string {
  const seconds = micros / 1_000_000;
  const [unit, name] = (
    [
      [86_400, "d"],
      [3_600, "h"],
      [60, "m"],
    ] as const
  ).find(([length]) => seconds % length === 0) ?? [1, "s"];
  return `${seconds / unit}${name}`;
}
