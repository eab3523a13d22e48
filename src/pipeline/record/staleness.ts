import { type Cronjob, nextStarts } from "../file/cron.ts";

/** Starts that are asked for at a time. */
const atOnce = 64;
const minuteMs = 60_000;
/** A start on 29 February may be eight years from the next. */
const farthestMs = 30 * 366 * 24 * 60 * minuteMs;

/**
 * How old the last success of a job may be, in milliseconds: two intervals of its schedule, the longer where those before
 * and behind now differ, as over a weekend; null where it has not started three times yet, by its schedule.
 */
export function twoIntervalsMs(schedule: Cronjob, now: Date): number | null {
  const next = nextStarts(schedule, 1, now)[0]?.getTime();
  for (let spanMs = minuteMs; spanMs < farthestMs; spanMs *= 2) {
    const passed = startsBetween(schedule, new Date(now.getTime() - spanMs), now);
    if (passed.length < 3) continue;
    const [third, second, last] = passed.slice(-3) as [number, number, number];
    return Math.max(last - third, next === undefined ? 0 : next - second);
  }
  return null;
}

function startsBetween(schedule: Cronjob, from: Date, to: Date): number[] {
  let last: number[] = [];
  for (let after = from; ; ) {
    const starts = nextStarts(schedule, atOnce, after);
    const passed = starts.filter((start) => start <= to).map((start) => start.getTime());
    // the last three are enough
    last = [...last, ...passed].slice(-3);
    if (passed.length < starts.length || starts.length === 0) return last;
    after = starts.at(-1)!;
  }
}
