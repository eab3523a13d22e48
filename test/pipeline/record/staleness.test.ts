import { expect, test } from "vitest";
import { diskOutlook } from "../../../src/pipeline/record/job-history.ts";
import { twoIntervalsMs } from "../../../src/pipeline/record/staleness.ts";

const hourMs = 3_600_000;

test.each([
  ["each night", "15 2 * * *", "UTC", "2022-01-20T10:00:00Z", 48],
  ["each night, right at a start", "15 2 * * *", "UTC", "2022-01-20T02:15:00Z", 48],
  ["each hour", "0 * * * *", "UTC", "2022-01-20T10:30:00Z", 2],
  ["each minute", "* * * * *", "UTC", "2022-01-20T10:30:00Z", 2 / 60],
  ["each week", "0 3 * * 1", "UTC", "2022-01-20T10:30:00Z", 14 * 24],
  // over a weekend Friday's success is no older than it has to be
  ["on weekdays, on a Sunday", "15 2 * * 1-5", "UTC", "2022-01-23T10:00:00Z", 96],
  ["on weekdays, on a Monday", "15 2 * * 1-5", "UTC", "2022-01-24T10:00:00Z", 96],
  ["on weekdays, on a Thursday", "15 2 * * 1-5", "UTC", "2022-01-27T10:00:00Z", 48],
  ["each minute of an hour a week", "* 5 * * 1", "UTC", "2022-01-26T10:00:00Z", 7 * 24 - 1 + 2 / 60],
  // a night of 25 hours is among them
  ["over the end of summer time", "15 2 * * *", "Europe/Berlin", "2022-10-31T10:00:00Z", 49],
  ["in leap years", "0 0 29 2 *", "UTC", "2022-01-20T10:00:00Z", 8 * 365.25 * 24],
])("two intervals %s", (_, cron, timezone, now, expected) => {
  expect(twoIntervalsMs({ cron, timezone }, new Date(now))! / hourMs).toBeCloseTo(expected, 1);
});

test("a disk lasts for as many nights as the last executions of all jobs together would fill", () => {
  const jobs = [{ grownBytes: [100, 300] }, { grownBytes: [50] }, { grownBytes: [] }];
  expect(diskOutlook(1_000, jobs)).toEqual({ freeBytes: 1_000, grownPerNight: 250, nights: 4 });
  expect(diskOutlook(1_000, [{ grownBytes: [] }])).toEqual({
    freeBytes: 1_000,
    grownPerNight: null,
    nights: null,
  });
  expect(diskOutlook(1_000, [{ grownBytes: [-5] }])).toEqual({
    freeBytes: 1_000,
    grownPerNight: -5,
    nights: null,
  });
});
