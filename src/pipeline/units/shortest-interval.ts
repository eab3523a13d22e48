import { type Cronjob, nextStarts } from "../file/cron.ts";

/** The shortest time between two of the next starts of a schedule, in seconds. */
export function shortestInterval(job: Cronjob, now: Date): number {
  const starts = nextStarts(job, 50, now).map((start) => start.getTime());
  const gaps = starts.slice(1).map((start, index) => start - starts[index]!);
  return Math.round(Math.min(...gaps) / 1000);
}
