// @module-tag slow
import { afterEach, describe, expect, test, vi } from "vitest";
import { VirtualSchedule } from "../../fixtures/pipeline/virtual-schedule.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("an execution starts when its schedule says so, once for each time", async () => {
  const schedule = await VirtualSchedule.open();
  await schedule.write("nightly", { cron: "15 2 * * *", timezone: "Europe/Berlin" });
  await schedule.run("2026-01-10T12:00:00Z", "2026-01-13T12:00:00Z");
  expect(schedule.started).toEqual([
    "nightly at 2026-01-11T01:15Z",
    "nightly at 2026-01-12T01:15Z",
    "nightly at 2026-01-13T01:15Z",
  ]);
  expect(schedule.skipped).toEqual([]);
  expect(schedule.told("next").map(({ start }) => start.toISOString())).toEqual([
    "2026-01-11T01:15:00.000Z",
    "2026-01-12T01:15:00.000Z",
    "2026-01-13T01:15:00.000Z",
    "2026-01-14T01:15:00.000Z",
  ]);
});

describe("on the days on which clocks change, a night at 02:30 comes once", () => {
  test.each([
    [
      "Europe/Berlin",
      "2026-03-27T12:00:00Z",
      ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
    ],
    [
      "Europe/Berlin",
      "2026-10-23T12:00:00Z",
      ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    ],
    [
      "America/New_York",
      "2026-03-06T12:00:00Z",
      ["2026-03-07T07:30Z", "2026-03-08T07:00Z", "2026-03-09T06:30Z"],
    ],
    [
      "America/New_York",
      "2026-10-30T12:00:00Z",
      ["2026-10-31T06:30Z", "2026-11-01T07:30Z", "2026-11-02T07:30Z"],
    ],
    [
      "Australia/Sydney",
      "2026-04-03T03:00:00Z",
      ["2026-04-03T15:30Z", "2026-04-04T15:30Z", "2026-04-05T16:30Z"],
    ],
    [
      "Australia/Sydney",
      "2026-10-02T03:00:00Z",
      ["2026-10-02T16:30Z", "2026-10-03T16:00Z", "2026-10-04T15:30Z"],
    ],
  ])("%s from %s", async (timezone, from, starts) => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("nightly", { cron: "30 2 * * *", timezone });
    await schedule.run(from, new Date(Date.parse(from) + 3 * 86_400_000).toISOString());
    expect(schedule.started).toEqual(starts.map((start) => `nightly at ${start}`));
    expect(schedule.skipped).toEqual([]);
  });
});

describe("a clock that jumps", () => {
  test("back starts nothing twice", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("hourly", { cron: "0 * * * *", timezone: "UTC" });
    schedule.jumps = [[new Date("2026-01-10T03:05:00Z"), new Date("2026-01-10T01:30:00Z")]];
    await schedule.run("2026-01-10T01:50:00Z", "2026-01-10T05:30:00Z");
    expect(schedule.started).toEqual([
      "hourly at 2026-01-10T02:00Z",
      "hourly at 2026-01-10T03:00Z",
      "hourly at 2026-01-10T04:00Z",
      "hourly at 2026-01-10T05:00Z",
    ]);
    expect(schedule.skipped).toEqual([]);
  });

  test("ahead, as after a suspend, makes up for the last start alone, and tells of the others", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("nightly", { cron: "15 2 * * *", timezone: "UTC", catch_up: "20h" });
    schedule.jumps = [[new Date("2026-01-10T23:00:00Z"), new Date("2026-01-13T09:00:00Z")]];
    await schedule.run("2026-01-10T12:00:00Z", "2026-01-13T12:00:00Z");
    expect(schedule.started).toEqual(["nightly at 2026-01-13T09:00Z"]);
    expect(schedule.told("started")).toMatchObject([
      { isLate: true, start: new Date("2026-01-13T02:15:00Z") },
    ]);
    expect(schedule.skipped).toEqual([
      "nightly at 2026-01-11T02:15Z: missed",
      "nightly at 2026-01-12T02:15Z: missed",
    ]);
  });
});

describe("a start that came while nothing could start it", () => {
  const nights = { cron: "15 2 * * *", timezone: "UTC" };
  test.each([
    ["is made up for within catch_up", { ...nights, catch_up: "20h" }, ["nightly at 2026-01-12T08:00Z"], []],
    ["is left out without it", nights, [], ["nightly at 2026-01-12T02:15Z: missed"]],
    ["is left out behind it", { ...nights, catch_up: "5h" }, [], ["nightly at 2026-01-12T02:15Z: missed"]],
  ])("%s", async (_, keys, started, skipped) => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("nightly", keys);
    schedule.begun.set("nightly", new Date("2026-01-11T02:18:11Z"));
    await schedule.run("2026-01-12T08:00:00Z", "2026-01-12T20:00:00Z");
    expect([schedule.started, schedule.skipped]).toEqual([started, skipped]);
  });

  test("is none where the records know its execution, or the job never ran", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("known", { ...nights, catch_up: "20h" });
    await schedule.write("new", { ...nights, catch_up: "20h" });
    schedule.begun.set("known", new Date("2026-01-12T02:15:00.004Z"));
    await schedule.run("2026-01-12T08:00:00Z", "2026-01-12T20:00:00Z");
    expect([schedule.started, schedule.skipped]).toEqual([[], []]);
  });

  test("is none where its execution is of the future, by a clock that was wrong", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("nightly", { ...nights, catch_up: "20h" });
    schedule.begun.set("nightly", new Date("2026-01-13T02:15:00.004Z"));
    await schedule.run("2026-01-12T00:00:00Z", "2026-01-14T08:00:00Z");
    expect(schedule.started).toEqual(["nightly at 2026-01-14T02:15Z"]);
  });
});

describe("executions that go on", () => {
  test("one at a time a file: a start that falls into one is left out and told", async () => {
    const schedule = await VirtualSchedule.open();
    schedule.lastsMs = 90 * 60_000;
    await schedule.write("hourly", { cron: "0 * * * *", timezone: "UTC", catch_up: "1h" });
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T05:30:00Z");
    expect(schedule.started).toEqual([
      "hourly at 2026-01-10T01:00Z",
      "hourly at 2026-01-10T03:00Z",
      "hourly at 2026-01-10T05:00Z",
    ]);
    expect(schedule.skipped).toEqual([
      "hourly at 2026-01-10T02:00Z: running",
      "hourly at 2026-01-10T04:00Z: running",
    ]);
  });

  test("no more files than may: the next waits, however long it takes", async () => {
    const schedule = await VirtualSchedule.open();
    schedule.lastsMs = 3 * 3_600_000;
    for (const job of ["a", "b", "c"]) await schedule.write(job, { cron: "0 1 * * *", timezone: "UTC" });
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T12:00:00Z");
    expect(schedule.started).toEqual([
      "a at 2026-01-10T01:00Z",
      "b at 2026-01-10T04:00Z",
      "c at 2026-01-10T07:00Z",
    ]);
    expect(schedule.told("waits").map(({ job }) => job)).toEqual(["b", "c"]);
    expect(schedule.skipped).toEqual([]);
  });

  test("and as many as may side by side", async () => {
    const schedule = await VirtualSchedule.open();
    schedule.parallel = 2;
    schedule.lastsMs = 3_600_000;
    for (const job of ["a", "b", "c"]) await schedule.write(job, { cron: "0 1 * * *", timezone: "UTC" });
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T12:00:00Z");
    expect(schedule.started).toEqual([
      "a at 2026-01-10T01:00Z",
      "b at 2026-01-10T01:00Z",
      "c at 2026-01-10T02:00Z",
    ]);
  });
});

describe("jitter", () => {
  test("puts a start off, by no more than it says", async () => {
    const schedule = await VirtualSchedule.open();
    const draws = [0, 0.25, 0.999];
    schedule.random = () => draws.shift() ?? 0;
    await schedule.write("nightly", { cron: "0 1 * * *", timezone: "UTC", jitter: "20m" });
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-12T12:00:00Z");
    expect(schedule.started).toEqual([
      "nightly at 2026-01-10T01:00Z",
      "nightly at 2026-01-11T01:05Z",
      "nightly at 2026-01-12T01:19:58.800Z",
    ]);
  });

  test("longer than the time between starts leaves none of them out", async () => {
    const schedule = await VirtualSchedule.open();
    schedule.lastsMs = 1_000;
    schedule.random = () => 0.9;
    await schedule.write("often", { cron: "* * * * *", timezone: "UTC", jitter: "10m" });
    await schedule.run("2026-01-10T00:00:30Z", "2026-01-10T00:10:30Z");
    expect(schedule.started).toHaveLength(9);
    expect(schedule.skipped).toEqual([]);
  });
});

describe("files that change", () => {
  const cron = { cron: "0 * * * *", timezone: "UTC" };

  test("one that became bad is not run in its old form, the others go on, and it runs again when it is mended", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("a", cron);
    await schedule.write("b", cron);
    schedule.at.push(
      [new Date("2026-01-10T01:30:00Z"), () => schedule.spoil("a", "version: 1\nname: a\nname: b\n")],
      [new Date("2026-01-10T03:30:00Z"), () => schedule.write("a", cron)],
    );
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T04:30:00Z");
    expect(schedule.started.filter((text) => text.startsWith("a"))).toEqual([
      "a at 2026-01-10T01:00Z",
      "a at 2026-01-10T04:00Z",
    ]);
    expect(schedule.started.filter((text) => text.startsWith("b"))).toHaveLength(4);
    expect(schedule.skipped).toEqual(["a at 2026-01-10T02:00Z: bad", "a at 2026-01-10T03:00Z: bad"]);
    // told once, with the job as it was
    expect(schedule.told("bad")).toMatchObject([{ was: { job: { name: "a" } } }]);
    expect(schedule.told("good")).toHaveLength(1);
  });

  test("what they say now counts from a hangup on, and a start that only the new schedule had is not missed", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("a", { cron: "0 1 * * *", timezone: "UTC" });
    schedule.at.push([
      new Date("2026-01-10T06:30:00Z"),
      async (scheduler) => {
        await schedule.write("a", { ...cron, catch_up: "10h" });
        await scheduler.reread();
      },
    ]);
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T08:30:00Z");
    expect(schedule.started).toEqual([
      "a at 2026-01-10T01:00Z",
      "a at 2026-01-10T07:00Z",
      "a at 2026-01-10T08:00Z",
    ]);
    expect(schedule.skipped).toEqual([]);
  });

  test("one that was bad from the beginning is taken up when it is mended", async () => {
    const schedule = await VirtualSchedule.open();
    await schedule.write("a", cron);
    await schedule.spoil("b", "");
    schedule.at.push([
      new Date("2026-01-10T01:30:00Z"),
      async (scheduler) => {
        await schedule.write("b", cron);
        await scheduler.reread();
      },
    ]);
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T02:30:00Z");
    expect(schedule.started).toEqual([
      "a at 2026-01-10T01:00Z",
      "a at 2026-01-10T02:00Z",
      "b at 2026-01-10T02:01Z",
    ]);
    expect(schedule.told("bad")).toMatchObject([{ was: null }]);
  });
});

describe("stopping", () => {
  test("asks what runs to end, and waits for it", async () => {
    const schedule = await VirtualSchedule.open();
    schedule.lastsMs = 24 * 3_600_000;
    await schedule.write("a", { cron: "0 1 * * *", timezone: "UTC" });
    await schedule.run("2026-01-10T00:30:00Z", "2026-01-10T02:00:00Z");
    expect(schedule.signals).toEqual(["SIGTERM"]);
    expect(schedule.told("ended")).toMatchObject([{ status: null, signal: "SIGTERM" }]);
  });

  test("does so as well where it cannot go on", async () => {
    const schedule = await VirtualSchedule.open();
    schedule.lastsMs = 24 * 3_600_000;
    await schedule.write("a", { cron: "0 1 * * *", timezone: "UTC" });
    schedule.at.push([
      new Date("2026-01-10T01:30:00Z"),
      async () => {
        throw new Error("no more memory");
      },
    ]);
    await expect(schedule.run("2026-01-10T00:30:00Z", "2026-01-10T02:00:00Z")).rejects.toThrow("memory");
    expect(schedule.signals).toEqual(["SIGTERM"]);
    expect(schedule.told("ended")).toMatchObject([{ status: null, signal: "SIGTERM" }]);
  });

  test("kills what does not end within its grace", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const schedule = await VirtualSchedule.open();
    schedule.lastsMs = Number.POSITIVE_INFINITY;
    await schedule.write("a", { cron: "0 1 * * *", timezone: "UTC", grace: "30s" });
    const running = schedule.run("2026-01-10T00:30:00Z", "2026-01-10T02:00:00Z");
    await vi.waitFor(() => expect(schedule.signals).toEqual(["SIGTERM"]));
    await vi.advanceTimersByTimeAsync(30_000);
    expect(schedule.signals).toEqual(["SIGTERM"]);
    await vi.advanceTimersByTimeAsync(5_000);
    await running;
    expect(schedule.signals).toEqual(["SIGTERM", "SIGKILL"]);
  });
});
