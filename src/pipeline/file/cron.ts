import { Cron } from "croner";
import { ZoneClock } from "./zone-clock.ts";

/** The five fields and their ranges. */
const fields: readonly Field[] = [
  { name: "minute", from: 0, to: 59, names: [] },
  { name: "hour", from: 0, to: 23, names: [] },
  { name: "day of the month", from: 1, to: 31, names: [] },
  {
    name: "month",
    from: 1,
    to: 12,
    names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
  },
  // 0 and 7 are both Sunday
  { name: "day of the week", from: 0, to: 7, names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] },
];

interface Field {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly names: readonly string[];
}

/** When a job starts: a cron expression in a time zone. */
export interface Cronjob {
  readonly cron: string;
  /** IANA name. */
  readonly timezone: string;
}

/**
 * What is wrong with a cron expression, in words; null if nothing is. It has five fields of numbers, names of months
 * and days, `*`, lists, ranges and steps, which all schedulers read alike.
 */
export function cronFault(text: string): string | null {
  const parts = text.trim().split(/\s+/);
  if (parts.length !== fields.length || parts[0] === "") {
    return `has ${parts[0] === "" ? 0 : parts.length} fields instead of five (minute, hour, day of the month, month, day of the week)`;
  }
  for (const [index, part] of parts.entries()) {
    const fault = part
      .split(",")
      .map((item) => itemFault(item, fields[index]!))
      .find((found) => found !== null);
    if (fault !== undefined) return fault;
  }
  return firstStart({ cron: text, timezone: "UTC" }) === null ? "never fires: no year has such a day" : null;
}

function itemFault(item: string, field: Field): string | null {
  const [, range = "", step] = /^([^/]*)(?:\/(.*))?$/.exec(item) ?? [];
  // a week has seven days: Sunday has two numbers
  const size = Math.min(field.to - field.from + 1, field.names[0] === "SUN" ? 7 : 60);
  if (step !== undefined && !(/^\d{1,2}$/.test(step) && Number(step) >= 1 && Number(step) <= size)) {
    return `has a wrong step in its ${field.name}: a step is a number from 1 to ${size} after the slash`;
  }
  if (range === "*") return null;
  if (step !== undefined && !range.includes("-")) {
    return `has a step after a single ${field.name}: write * or a range before the slash`;
  }
  const ends = range.split("-").map((end) => numberOf(end, field));
  if (ends.length > 2 || ends.some((end) => Number.isNaN(end) || end < field.from || end > field.to)) {
    const named = field.names.length === 0 ? "" : ` or ${field.names[0]} to ${field.names.at(-1)}`;
    return `has a wrong ${field.name}, which is ${field.from} to ${field.to}${named}`;
  }
  // croner takes it for 7 there, others take it for 0
  if (/-SUN$/i.test(range)) return "has a range that ends with SUN: write 7 for the Sunday at its end";
  return ends[0]! > (ends[1] ?? ends[0]!)
    ? `has a range in its ${field.name} that ends before it begins`
    : null;
}

function numberOf(end: string, field: Field): number {
  const name = field.names.indexOf(end.toUpperCase());
  if (name >= 0) return name + field.from;
  return /^\d{1,2}$/.test(end) ? Number(end) : Number.NaN;
}

/** The meaning of one field. */
export interface CronField {
  /** In rising order; days of the week from 0, Sunday, to 6. */
  readonly values: readonly number[];
  /** Whether it is `*`, which excludes nothing. False for `*` with a step, which schedulers read differently. */
  readonly isAny: boolean;
}

/** A cron expression as numbers. If both day fields are restricted, a day that matches either counts. */
export interface CronTimes {
  readonly minute: CronField;
  readonly hour: CronField;
  readonly day: CronField;
  readonly month: CronField;
  readonly weekday: CronField;
}

/** The times of a valid expression. */
export function cronTimes(cron: string): CronTimes {
  const [minute, hour, day, month, weekday] = cron
    .trim()
    .split(/\s+/)
    .map((part, index) => fieldOf(part, fields[index]!));
  const days = new Set(weekday!.values.map((value) => value % 7));
  return {
    ...{ minute: minute!, hour: hour!, day: day!, month: month! },
    weekday: { ...weekday!, values: [...days].sort((a, b) => a - b) },
  };
}

function fieldOf(part: string, field: Field): CronField {
  const values = new Set<number>();
  for (const item of part.split(",")) {
    const [range = "", step = "1"] = item.split("/");
    const [from = field.from, to = from] =
      range === "*" ? [field.from, field.to] : range.split("-").map((end) => numberOf(end, field));
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return { values: [...values].sort((a, b) => a - b), isAny: part === "*" };
}

/** The first start after an instant; null if there is none. */
function firstStart(job: Cronjob, after?: Date): Date | null {
  return nextStarts(job, 1, after)[0] ?? null;
}

/**
 * The next starts of a schedule after an instant (now). croner computes them on clocks that never change; each start is
 * when the zone's clocks first show that time. A repeated time thus starts once, and all times in a gap start once
 * together, at its end.
 */
export function nextStarts(
  { cron, timezone }: Cronjob,
  count: number,
  after: Date = new Date(),
): readonly Date[] {
  const clock = new ZoneClock(timezone);
  const times = new Cron(plainText(cronTimes(cron)), { utcOffset: 0, paused: true });
  const found: Date[] = [];
  let last = after.getTime();
  let time = times.nextRun(new Date(last + clock.offsetMs(last)));
  while (time !== null && found.length < count) {
    const start = clock.firstShown(time.getTime());
    if (start > last) found.push(new Date(start));
    last = Math.max(last, start);
    if (found.length < count) time = times.nextRun(time);
  }
  return found;
}

/** The expression in one canonical form for croner, independent of how it was written. */
function plainText({ minute, hour, day, month, weekday }: CronTimes): string {
  return [minute, hour, day, month, weekday]
    .map(({ values, isAny }) => (isAny ? "*" : values.join(",")))
    .join(" ");
}
