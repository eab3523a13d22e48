import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cronFault, cronTimes, nextStarts } from "../../../src/pipeline/file/cron.ts";
import { calendarLines } from "../../../src/pipeline/units/calendar-lines.ts";
import { cronText } from "../../../src/pipeline/units/cron-text.ts";
import { anyCron } from "../../fixtures/source/any-cron.ts";

describe("an expression in numbers that every cron reads alike", () => {
  test.each([
    ["15 2 * * *", "15 2 * * *"],
    ["*/15 */7 * jan,DEC *", "0,15,30,45 0,7,14,21 * 1,12 *"],
    // a star would have cron start it at each hour that passes, twice where clocks are put back
    ["5 * * * *", "5 0-23 * * *"],
    ["* * * * *", "* * * * *"],
    ["0-30/10 8-18 1,15 JAN-jun MON-FRI", "0,10,20,30 8-18 1,15 1-6 1-5"],
    ["0 0 * * 7", "0 0 * * 0"],
    ["0 0 * * 5-7", "0 0 * * 0,5-6"],
    // Vixie's cron takes a day in steps for any day, croner does not
    ["0 0 */10 * MON", "0 0 1,11,21,31 * 1"],
    ["0 0 1-31 * MON", "0 0 1-31 * 1"],
  ])("%s is %s", (cron, expected) => expect(cronText(cronTimes(cron))).toBe(expected));

  test("starts when the expression does", () => {
    fc.assert(
      fc.property(
        anyCron,
        fc.constantFrom("Etc/UTC", "Europe/Berlin", "America/New_York"),
        (cron, timezone) => {
          fc.pre(cronFault(cron) === null);
          const at = new Date("2026-02-27T11:11:00Z");
          const same = cronText(cronTimes(cron));
          expect(cronFault(same)).toBeNull();
          expect(nextStarts({ cron: same, timezone }, 20, at)).toEqual(
            nextStarts({ cron, timezone }, 20, at),
          );
        },
      ),
      // found by a seed: one of the two forms did not start on the day on which New York skips 02:00
      { seed: 1, numRuns: 200, examples: [["0 2-2/1 * * 0", "America/New_York"]] },
    );
  });
});

describe("a schedule as calendars of systemd", () => {
  const now = new Date("2026-01-01T00:00:00Z");
  const lines = (cron: string, timezone = "Etc/UTC") => calendarLines({ cron, timezone }, now);

  test.each([
    ["15 2 * * *", ["*-*-* 02:15:00 Etc/UTC"]],
    ["*/20 8-18 * 1,6-8 MON-FRI", ["Mon,Tue,Wed,Thu,Fri *-01,06..08-* 08..18:00,20,40:00 Etc/UTC"]],
    ["0 0 1,15 * SUN", ["*-*-01,15 00:00:00 Etc/UTC", "Sun *-*-* 00:00:00 Etc/UTC"]],
    ["0 0 29 2 *", ["*-02-29 00:00:00 Etc/UTC"]],
  ])("%s", (cron, expected) => expect(lines(cron)).toEqual(expected));

  test("has the days of ten years on which clocks pass over the time", () => {
    const berlin = lines("30 2 * * *", "Europe/Berlin");
    expect(berlin).toHaveLength(11);
    expect(berlin.slice(0, 3)).toEqual([
      "*-*-* 02:30:00 Europe/Berlin",
      "2026-03-29 03:00:00 Europe/Berlin",
      "2027-03-28 03:00:00 Europe/Berlin",
    ]);
    expect(lines("15 4 * * *", "Europe/Berlin")).toHaveLength(1);
    expect(lines("*/5 * * * *", "Europe/Berlin")).toHaveLength(1);
  });
});
