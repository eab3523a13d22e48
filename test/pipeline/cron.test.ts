import { describe, expect, test } from "vitest";
import { nearestZone, zoneFault } from "../../src/model/text/time-zone.ts";
import { cronFault, nextStarts } from "../../src/pipeline/file/cron.ts";

describe("a start at 02:30 comes once a day where clocks change", () => {
  test.each([
    [
      "Europe/Berlin",
      "in spring",
      "2026-03-28",
      ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"],
    ],
    [
      "Europe/Berlin",
      "in autumn",
      "2026-10-24",
      ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"],
    ],
    [
      "America/New_York",
      "in spring",
      "2026-03-07",
      ["2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30"],
    ],
    [
      "America/New_York",
      "in autumn",
      "2026-10-31",
      ["2026-10-31T06:30", "2026-11-01T07:30", "2026-11-02T07:30"],
    ],
    [
      "Australia/Sydney",
      "in spring",
      "2026-10-03",
      ["2026-10-03T16:00", "2026-10-04T15:30", "2026-10-05T15:30"],
    ],
    [
      "Australia/Sydney",
      "in autumn",
      "2026-04-04",
      ["2026-04-04T15:30", "2026-04-05T16:30", "2026-04-06T16:30"],
    ],
  ])("%s %s", (timezone, _, from, expected) => {
    const starts = nextStarts({ cron: "30 2 * * *", timezone }, 3, new Date(`${from}T00:00:00Z`));
    expect(starts.map((start) => start.toISOString().slice(0, 16))).toEqual(expected);
  });

  test.each(["Europe/Berlin", "America/New_York", "Australia/Sydney"])(
    "all of two years in %s",
    (timezone) => {
      const starts = nextStarts({ cron: "30 2 * * *", timezone }, 730, new Date("2026-01-01T12:00:00Z"));
      const days = starts.map((start) => start.toLocaleDateString("en-CA", { timeZone: timezone }));
      expect(new Set(days).size).toBe(730);
      expect(days.at(-1)! < "2028-01-02").toBe(true);
    },
  );
});

test.each([
  ["Europe/Berlin", "0 2,14 * * *", "2026-10-25T00:00 2026-10-25T13:00 2026-10-26T01:00"],
  ["Europe/Berlin", "0 * * * *", "2026-10-24T23:00 2026-10-25T00:00 2026-10-25T02:00"],
  ["Europe/Berlin", "30 1,2 * * 7", "2026-10-24T23:30 2026-10-25T00:30 2026-11-01T00:30"],
])("in %s, %s starts once where the clocks show its time twice", (timezone, cron, expected) => {
  const starts = nextStarts({ cron, timezone }, 3, new Date("2026-10-24T22:30:00Z"));
  expect(starts.map((start) => start.toISOString().slice(0, 16)).join(" ")).toBe(expected);
});

test.each([
  ["Europe/Berlin", "0,20,40 2 * * *", "2026-03-29T01:00 2026-03-30T00:00 2026-03-30T00:20"],
  ["Europe/Berlin", "30 2,3 * * *", "2026-03-29T01:00 2026-03-29T01:30 2026-03-30T00:30"],
  ["Europe/Berlin", "30 * * * *", "2026-03-29T00:30 2026-03-29T01:00 2026-03-29T01:30"],
  ["Europe/Berlin", "*/30 * * * *", "2026-03-29T00:30 2026-03-29T01:00 2026-03-29T01:30"],
  ["America/New_York", "0 2-2/1 * * 0", "2026-03-08T07:00 2026-03-15T06:00 2026-03-22T06:00"],
  ["Australia/Lord_Howe", "15 2 * * *", "2026-10-03T15:30 2026-10-04T15:15 2026-10-05T15:15"],
  ["Africa/Cairo", "30 0 * * *", "2026-04-23T22:00 2026-04-24T21:30 2026-04-25T21:30"],
  // on Saturday, whose last hour is skipped: the gap ends with it
  ["America/Nuuk", "30 23 * * 6", "2026-03-29T01:00 2026-04-05T00:30 2026-04-12T00:30"],
])("in %s, %s starts once at the end of a gap that its time is in", (timezone, cron, expected) => {
  const [first = ""] = expected.split(" ");
  const starts = nextStarts({ cron, timezone }, 3, new Date(Date.parse(`${first}Z`) - 1));
  expect(starts.map((start) => start.toISOString().slice(0, 16)).join(" ")).toBe(expected);
});

test("starts come after the instant, not at it", () => {
  const at = new Date("2026-01-01T02:15:00Z");
  expect(nextStarts({ cron: "15 2 * * *", timezone: "Etc/UTC" }, 2, at)).toEqual([
    new Date("2026-01-02T02:15:00Z"),
    new Date("2026-01-03T02:15:00Z"),
  ]);
});

describe("a cron expression", () => {
  test.each([
    "15 2 * * *",
    "*/15 * * * *",
    "0-30/10 8-18 1,15 JAN-jun MON-FRI",
    "0 0 29 2 *",
    "0 0 * * 7",
    "0 0 * * 0",
    "0 0 31 12 5",
  ])("%s is one", (text) => expect(cronFault(text)).toBeNull());

  test.each([
    ["0 0 30 2 *", "never fires: no year has such a day"],
    ["0 0 31 4,6,9,11 *", "never fires: no year has such a day"],
    ["60 * * * *", "has a wrong minute, which is 0 to 59"],
    ["* * 0 * *", "has a wrong day of the month, which is 1 to 31"],
    ["* * * 13 *", "has a wrong month, which is 1 to 12 or JAN to DEC"],
    ["* * * * 8", "has a wrong day of the week, which is 0 to 7 or SUN to SAT"],
    ["* * L * *", "has a wrong day of the month, which is 1 to 31"],
    ["* * * * 1#2", "has a wrong day of the week, which is 0 to 7 or SUN to SAT"],
    ["? * * * *", "has a wrong minute, which is 0 to 59"],
    ["5/10 * * * *", "has a step after a single minute: write * or a range before the slash"],
    ["*/0 * * * *", "has a wrong step in its minute: a step is a number from 1 to 60 after the slash"],
    [
      "0 0 * * */8",
      "has a wrong step in its day of the week: a step is a number from 1 to 7 after the slash",
    ],
    ["1--2 * * * *", "has a wrong minute, which is 0 to 59"],
    ["1, * * * *", "has a wrong minute, which is 0 to 59"],
  ])("%s is none", (text, fault) => expect(cronFault(text)).toBe(fault));
});

describe("a time zone", () => {
  test.each([
    "Europe/Berlin",
    "UTC",
    "Etc/UTC",
    "US/Eastern",
    "Asia/Calcutta",
    "America/Argentina/Buenos_Aires",
  ])("%s is one", (name) => expect(zoneFault(name)).toBeNull());

  test.each([
    "Europe/Berlim",
    "europe/berlin",
    "us/eastern",
    "+02:00",
    "UTC+2",
    "GMT-5",
    "",
    "local",
    "Berlin",
  ])("%s is none", (name) => expect(zoneFault(name)).not.toBeNull());

  test("is guessed by its city", () => {
    expect(["berlin", "New York", "Europe/Pariss"].map(nearestZone)).toEqual([
      "Europe/Berlin",
      "America/New_York",
      "Europe/Paris",
    ]);
  });
});
