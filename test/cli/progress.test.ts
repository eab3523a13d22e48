import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { cutMiddle } from "../../src/cli/output/fit-line.ts";
import { showProgress } from "../../src/cli/output/progress.ts";
import { barLine, type Course, progressLine } from "../../src/cli/output/progress-line.ts";
import { byteText } from "../../src/model/text/byte-text.ts";
import { durationText } from "../../src/model/text/duration-text.ts";
import { grouped, tookText } from "../../src/model/text/number-text.ts";

const course: Course = {
  what: "alpha-1/2022-01-01-001",
  part: null,
  rows: 120_000,
  bytes: 53_100_000,
  total: 1_000_000,
  perSecond: 48_000,
  leftMs: 18_000,
  converting: null,
};

/** Lines of a job's progress, one a second by a clock that the test moves. */
function lines() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const told: string[] = [];
  const write = (text: string) => void told.push(text.trimEnd());
  const nowMs = () => Date.now();
  const progress = showProgress({ style: "lines", stream: process.stderr, write, nowMs, lineEveryMs: 1_000 });
  onTestFinished(() => progress[Symbol.dispose]());
  return { progress, told, pass: (ms: number) => vi.advanceTimersByTime(ms) };
}

describe("a line of progress", () => {
  it("says which run of how many, rows, bytes, rate and what is left", () => {
    expect(progressLine(course)).toBe(
      "alpha-1/2022-01-01-001: 120,000 of 1,000,000 rows, 53.1 MB, 48,000 rows/s, 18 s left",
    );
    expect(progressLine({ ...course, part: { number: 37, of: 400, isAlone: true }, leftMs: 7_260_000 })).toBe(
      "run 37 of 400 alpha-1/2022-01-01-001: 120,000 of 1,000,000 rows, 53.1 MB, 48,000 rows/s, 2 h 1 min left",
    );
    const last = { what: "a/b", rows: 1, total: 1, bytes: 900, perSecond: 1.6, leftMs: null };
    expect(progressLine({ ...course, ...last })).toBe("a/b: 1 of 1 row, 900 B, 2 rows/s, finishing");
    expect(progressLine({ ...course, total: null, leftMs: null, what: "" })).toBe(
      "120,000 rows, 53.1 MB, 48,000 rows/s",
    );
  });

  it("says no rate of nothing", () => {
    const none = { rows: 0, bytes: 0, perSecond: 48_000, leftMs: null };
    expect(progressLine({ ...course, ...none, total: 19_006 })).toBe(
      "alpha-1/2022-01-01-001: 0 of 19,006 rows",
    );
    expect(progressLine({ ...course, ...none, total: null })).toBe("alpha-1/2022-01-01-001");
    expect(progressLine({ ...course, ...none, total: 0 })).toBe("alpha-1/2022-01-01-001");
    for (const perSecond of [null, 0, 0.4])
      expect(progressLine({ ...course, perSecond, leftMs: null })).not.toContain("rows/s");
  });

  it("has numbers in groups, and durations in two units at most", () => {
    expect([59_400, 61_000, 7_260_000].map(durationText)).toEqual(["59 s", "1 min 1 s", "2 h 1 min"]);
    expect([0, 1_260, 9_940, 9_960, 61_000].map(tookText)).toEqual([
      "0.1 s",
      "1.3 s",
      "9.9 s",
      "10 s",
      "1 min 1 s",
    ]);
    expect([byteText(999), byteText(1_500), grouped(1234567n)]).toEqual(["999 B", "1.5 kB", "1,234,567"]);
  });
});

describe("a bar", () => {
  const many = { ...course, part: { number: 37, of: 400, isAlone: true }, leftMs: 7_260_000 };

  it("fits its terminal: the name is cut, then the bar; rate and time left stay", () => {
    expect(barLine(many, 140)).toBe(
      "█░░░░░░░░░░░░░░░░░░░ run 37 of 400 alpha-1/2022-01-01-001: 120,000 of 1,000,000 rows, 53.1 MB, 48,000 rows/s, 2 h 1 min left",
    );
    expect(barLine(many, 120)).toBe(
      "░░░░░░░░░░ run 37 of 400 alpha-1/2022-01-01-001: 120,000 of 1,000,000 rows, 53.1 MB, 48,000 rows/s, 2 h 1 min left",
    );
    expect(barLine(many, 80)).toBe(
      "run 37 of 400 alp…001: 120,000 of 1,000,000 rows, 48,000 rows/s, 2 h 1 min left",
    );
    for (let columns = 1; columns < 200; columns++) {
      expect(barLine(many, columns).length).toBeLessThan(columns);
      if (columns >= 80) expect(barLine(many, columns)).toMatch(/ 48,000 rows\/s, 2 h 1 min left$/);
    }
  });

  it("gives wide characters the room that they take", () => {
    const what = "戦略".repeat(20);
    expect(cutMiddle(what, 11)).toBe("戦略戦…戦略");
    expect(cutMiddle("e\u0301".repeat(9), 5)).toBe(`${"e\u0301".repeat(2)}…${"e\u0301".repeat(2)}`);
    expect(barLine({ ...course, what }, 80)).toMatch(/^█░{9} 戦略戦略…略戦略: .* left$/);
    expect(barLine({ ...course, what }, 80)).toHaveLength(79 - 7);
  });

  it("leaves out the rate, and rows that are converted, before it cuts what is said", () => {
    const rows = {
      what: "alpha-1/2022-01-29-002",
      rows: 95_860,
      total: 377_760,
      perSecond: 48_000,
      leftMs: 8_000,
    };
    expect(barLine({ ...course, ...rows }, 40)).toBe("al…02: 95,860 of 377,760 rows, 8 s left");
    const converting = { number: 3, of: 8 };
    expect(barLine({ ...course, ...rows, converting }, 40)).toBe("alph…9-002: converting 3 of 8, 8 s left");
  });

  it("shows runs that are done, and the share of the one at hand", () => {
    const half = { rows: 5, total: 10 };
    expect(barLine({ ...course, ...half }, 200)).toMatch(/^█{10}░{10} /);
    expect(barLine({ ...course, ...half, part: { number: 4, of: 4, isAlone: true } }, 200)).toMatch(
      /^█{17}░{3} /,
    );
    expect(barLine({ ...course, total: null }, 200)).toMatch(/^alpha-1/);
  });

  it("is drawn again where a report took its line, though nothing moved", async () => {
    const stream = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, columns: 80 });
    using progress = showProgress({ style: "bar", stream, write: () => {} });
    progress.on("alpha-1/a");
    let shown = "";
    const drawn = () => {
      const text: string = stream.read() ?? "";
      shown += text;
      return text.includes("alpha-1/a");
    };
    await expect.poll(drawn).toBe(true);
    stream.read();
    await expect.poll(drawn).toBe(true);
    // a process that is killed could not switch the wrapping of lines on again
    expect(shown).not.toContain("\u001b[?7");
  });
});

describe("progress of a job of many runs", () => {
  it("counts conversions from the first row on where rows are only converted", () => {
    const { progress, told, pass } = lines();
    progress.run("a/1", 1, 1);
    progress.expect(40);
    for (const _ of "1234") progress.conversion("planned");
    progress.add(10, 100);
    progress.conversion("done");
    pass(1_000);
    expect(told).toEqual(["a/1: 10 of 40 rows, 100 B, 10 rows/s, converting 2 of 4, 3 s left"]);
  });

  it("counts conversions once the rows are there, and never says that nothing is left", () => {
    const { progress, told, pass } = lines();
    progress.run("a/1", 1, 2);
    pass(1_000);
    progress.run("a/2", 2, 2);
    progress.expect(10);
    for (const _ of "123456") progress.conversion("asked");
    for (const _ of "123") progress.conversion("done");
    progress.add(5, 50);
    pass(1_000);
    progress.add(5, 50);
    pass(2_000);
    expect(told[1]).not.toContain("converting");
    expect(told.at(-1)).toBe("run 2 of 2 a/2: 10 of 10 rows, 100 B, 3 rows/s, converting 4 of 6");
    for (const _ of "123") progress.conversion("done");
    pass(1_000);
    expect(told.at(-1)).toMatch(/, finishing$/);
  });

  it("counts runs beside each other once they have ended, and conversions as soon as no more rows come", () => {
    const { progress, told, pass } = lines();
    for (const run of [1, 2, 3, 4]) progress.run(`a/${run}`, run, 4, false);
    progress.add(4_000, 4_000);
    for (const _ of "12") progress.conversion("asked");
    progress.conversion("done");
    pass(1_000);
    progress.ended();
    pass(1_000);
    for (const _ of "123") progress.ended();
    progress.conversion("done");
    pass(1_000);
    expect(told).toEqual([
      "0 of 4 runs: 4,000 rows, 4.0 kB, 4,000 rows/s",
      "1 of 4 runs: 4,000 rows, 4.0 kB, 2,000 rows/s, converting 2 of 2, 2 s left",
      "4 of 4 runs: 4,000 rows, 4.0 kB, 1,333 rows/s",
    ]);
  });

  it("goes by one clock over runs that are each too short for a line", () => {
    const { progress, told, pass } = lines();
    for (let run = 1; run <= 4; run++) {
      progress.run(`a/${run}`, run, 8);
      pass(600);
    }
    expect(told).toEqual(["run 2 of 8 a/2: 4 s left", "run 4 of 8 a/4: 3 s left"]);
  });

  it("estimates what is left of all runs, by the rows of the first and by the time of those done", () => {
    const { progress, told, pass } = lines();
    progress.run("a/1", 1, 3);
    progress.expect(4_000);
    progress.add(1_000, 4_000);
    pass(1_000);
    progress.add(3_000, 12_000);
    pass(1_000);
    progress.run("a/2", 2, 3);
    pass(1_000);
    expect(told).toEqual([
      // 3 s of the first, and 4 s of each of the others
      "run 1 of 3 a/1: 1,000 of 4,000 rows, 4.0 kB, 1,000 rows/s, 11 s left",
      "run 1 of 3 a/1: 4,000 of 4,000 rows, 16.0 kB, 2,000 rows/s, finishing",
      "run 2 of 3 a/2: 3 s left",
    ]);
  });

  it("never says more rows of fewer", () => {
    const { progress, told, pass } = lines();
    progress.run("a/b", 1, 1);
    progress.expect(19_006);
    progress.add(56_714, 100);
    pass(1_000);
    expect(told).toEqual(["a/b: 56,714 rows, 100 B, 56,714 rows/s"]);
  });

  it("stops when it is disposed, and shows what a name would do to the terminal", () => {
    const { progress, told, pass } = lines();
    progress.on("a/b\u001b[2K\nCOMPLETE");
    pass(1_000);
    expect(told).toEqual(["a/b\\u001b[2K\\nCOMPLETE"]);
    progress[Symbol.dispose]();
    pass(9_000);
    expect(told).toHaveLength(1);
  });
});
