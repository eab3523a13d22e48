import type { CronField, CronTimes } from "../file/cron.ts";

/**
 * The expression in numbers that every cron reads alike: Sunday is 0, names are gone, and days in steps are listed, for `*` with
 * a step means another day beside a day of the week to one scheduler than to the other.
 */
export function cronText({ minute, hour, day, month, weekday }: CronTimes): string {
  return [stepText(minute, 60), stepText(hour, 24), listText(day), listText(month), listText(weekday)].join(
    " ",
  );
}

/** Steps through a whole field as such. */
function stepText(field: CronField, size: number): string {
  const [first = 0, second = 0] = field.values;
  const step = second - first;
  const isWhole =
    first === 0 && step > 1 && field.values.length === Math.ceil(size / step) && isEven(field.values, step);
  return isWhole ? `*/${step}` : listText(field);
}

function isEven(values: readonly number[], step: number): boolean {
  return values.every((value, index) => value === index * step);
}

function listText({ values, isAny }: CronField): string {
  return isAny
    ? "*"
    : runsOf(values)
        .map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`))
        .join(",");
}

/** Rising numbers as the runs in which each follows the other. */
export function runsOf(values: readonly number[]): readonly (readonly [from: number, to: number])[] {
  const runs: [number, number][] = [];
  for (const value of values) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === value - 1) last[1] = value;
    else runs.push([value, value]);
  }
  return runs;
}
