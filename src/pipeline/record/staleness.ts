import { type Cronjob, nextStarts } from "../file/cron.ts";

/** Number of starts computed at a time. */
const atOnce = 64;
const minuteMs = 60_000;
/** Starts on 29 February may be eight years apart. */
const farthestMs = 30 * 366 * 24 * 60 * minuteMs;

/**
 * Maximum age of a job's last success, in milliseconds: two intervals of its schedule, using the longer of the last and
 * the next if they differ, as over a weekend. Null if the schedule has not had three starts yet.
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
