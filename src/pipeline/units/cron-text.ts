import type { CronField, CronTimes } from "../file/cron.ts";

/**
 * The expression in numbers that every cron reads alike, without names; Sunday is 0. It has no steps, because
 * schedulers disagree about a `*` with a step beside a day of the week. And cron handles skipped and repeated times
 * well only if neither minute nor hour begins with `*`, so a schedule of one minute in every hour lists its hours.
 */
export function cronText({ minute, hour, day, month, weekday }: CronTimes): string {
  const hours = minute.values.length === 1 ? { ...hour, isAny: false } : hour;
  return [minute, hours, day, month, weekday].map(listText).join(" ");
}

function listText({ values, isAny }: CronField): string {
  return isAny
    ? "*"
    : runsOf(values)
        .map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`))
        .join(",");
}

/** Splits rising numbers into consecutive runs. */
export function runsOf(values: readonly number[]): readonly (readonly [from: number, to: number])[] {
  const runs: [number, number][] = [];
  for (const value of values) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === value - 1) last[1] = value;
    else runs.push([value, value]);
  }
  return runs;
}
