import { nextStarts } from "../file/cron.ts";

/** The shortest time between two of an expression's next starts, in seconds, on clocks that never change. */
export function shortestInterval(cron: string, now: Date): number {
  const starts = nextStarts({ cron, timezone: "UTC" }, 50, now).map((start) => start.getTime());
  const gaps = starts.slice(1).map((start, index) => start - starts[index]!);
  return Math.round(Math.min(...gaps) / 1000);
}
