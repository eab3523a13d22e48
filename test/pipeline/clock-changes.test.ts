import { describe, expect, test } from "vitest";
import { cronTimes, nextStarts } from "../../src/pipeline/file/cron.ts";
import { calendarLines } from "../../src/pipeline/units/calendar-lines.ts";
import { cronText } from "../../src/pipeline/units/cron-text.ts";

const minuteMs = 60_000;
/** How far around a change starts are compared. */
const aroundMs = 4 * 60 * minuteMs;

/** Clocks are changed, from one offset to another, both in milliseconds. */
interface Change {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** The changes of a year: offsets at its months' first days, and bisection between two that differ. */
function changesOf(timeZone: string, year: number): readonly Change[] {
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  const offset = (at: number) => {
    const [, sign, hours = 0, minutes = 0] = /GMT(?:([+-])(\d\d):(\d\d))?$/.exec(format.format(at))!;
    return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * minuteMs;
  };
  const found: Change[] = [];
  for (let month = 0; month < 12; month++) {
    let [from, to] = [Date.UTC(year, month), Date.UTC(year, month + 1)];
    const [before, after] = [offset(from), offset(to)];
    while (before !== after && to - from > minuteMs) {
      const middle = from + Math.floor((to - from) / 2 / minuteMs) * minuteMs;
      if (offset(middle) === before) from = middle;
      else to = middle;
    }
    if (before !== after) found.push({ at: to, before, after });
  }
  return found;
}

/** Zones by their changes. */
const groups = new Map<string, { changes: readonly Change[]; zones: string[] }>();
for (const zone of Intl.supportedValuesOf("timeZone")) {
  const changes = changesOf(zone, 2026);
  if (changes.length === 0) continue;
  const key = JSON.stringify(changes);
  const group = groups.get(key) ?? { changes, zones: [] };
  groups.set(key, group);
  group.zones.push(zone);
}

/** Times as instants at which clocks in UTC show them. */
type IsTime = (time: number) => boolean;

/** Whether an expression has a time: where both days are said, either counts. */
function timesOf(cron: string): IsTime {
  const { minute, hour, day, month, weekday } = cronTimes(cron);
  return (time) => {
    const date = new Date(time);
    const isDay = day.values.includes(date.getUTCDate());
    const isWeekday = weekday.values.includes(date.getUTCDay());
    return (
      minute.values.includes(date.getUTCMinutes()) &&
      hour.values.includes(date.getUTCHours()) &&
      month.values.includes(date.getUTCMonth() + 1) &&
      (day.isAny || weekday.isAny ? isDay && isWeekday : isDay || isWeekday)
    );
  };
}

/** Whether one of systemd's calendars has a time. */
function calendarTimes(lines: readonly string[]): IsTime {
  const calendars = lines.map((line) => {
    const [, weekdays = "*", ...fields] =
      /^(?:([A-Z][a-zA-Z,]+) )?(\S+)-(\S+)-(\S+) (\S+):(\S+):00 \S+$/.exec(line) ?? [];
    return [...fields, weekdays].map((field) => field!.split(",").map((item) => item.split("..")));
  });
  return (time) => {
    const date = new Date(time);
    const values = [...date.toISOString().split(/[-T:]/, 5), date.toUTCString().slice(0, 3)];
    return calendars.some((fields) =>
      fields.every((items, index) =>
        items.some(
          ([low = "", high = low]) => low === "*" || (low <= values[index]! && values[index]! <= high),
        ),
      ),
    );
  };
}

/**
 * The starts around a change, by watching the clocks minute by minute. A time starts when it is shown for the first time; a
 * time that is skipped with the next one that is shown, or not at all.
 */
function watched({ at, before, after }: Change, isTime: IsTime, isSkippedStarted: boolean): number[] {
  const found: number[] = [];
  let latest = at - aroundMs - minuteMs + before;
  for (let now = at - aroundMs; now <= at + aroundMs; now += minuteMs) {
    const shown = now + (now < at ? before : after);
    let isStart = false;
    for (let time = latest + minuteMs; time <= shown; time += minuteMs) {
      if (isSkippedStarted || time === shown) isStart ||= isTime(time);
    }
    if (isStart) found.push(now);
    latest = Math.max(latest, shown);
  }
  return found;
}

/** The daemon's starts around a change, if there are no more than a number and one. */
function started({ at }: Change, cron: string, timezone: string, count: number): number[] {
  return nextStarts({ cron, timezone }, count + 1, new Date(at - aroundMs - 1))
    .map((start) => start.getTime())
    .filter((start) => start <= at + aroundMs);
}

function shown(what: string, starts: readonly number[]): string {
  return `${what}: ${starts.map((start) => new Date(start).toISOString()).join(" ")}`;
}

const expressions = [
  "30 2 * * *",
  "15 0 * * *",
  "10,40 0-3,23 * * *",
  "0 2-2/1 * * 0",
  "45 23,1 1-31/2 * SAT",
  "5 * * * *",
  "*/10 * * * *",
  "20 */2 * * *",
  "0 0,1,3 8,29 3-10 7",
];

describe("where clocks change in 2026, a schedule is served once", () => {
  test("in many zones", () => {
    expect([...groups.values()].flatMap(({ zones }) => zones).length).toBeGreaterThan(100);
    const gaps = [...groups.values()].flatMap(({ changes }) =>
      changes.map(({ before, after }) => (after - before) / minuteMs),
    );
    expect(new Set(gaps)).toEqual(new Set([-120, -60, -30, 30, 60, 120]));
  });

  test.each(expressions)("%s", (cron) => {
    const isTime = timesOf(cron);
    const inNumbers = cronText(cronTimes(cron));
    for (const { changes, zones } of groups.values()) {
      const [timezone] = zones as [string];
      const lines = calendarLines({ cron, timezone }, new Date("2026-01-01T00:00:00Z"));
      const isCalendarTime = calendarTimes(lines);
      for (const change of changes) {
        const expected = watched(change, isTime, true);
        for (const zone of zones) {
          expect(shown(zone, started(change, cron, zone, expected.length))).toBe(shown(zone, expected));
        }
        expect(started(change, inNumbers, timezone, expected.length)).toEqual(expected);
        const starts = watched(change, isCalendarTime, false);
        expect(shown(lines.join(), starts)).toBe(shown(lines.join(), expected));
      }
    }
  });
});
