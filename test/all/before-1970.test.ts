import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { metricsSchema } from "../../src/analytics/metrics/metrics-document.ts";
import type { ReconcileReport } from "../../src/analytics/reconcile/reconcile-report.ts";
import { formatRun } from "../../src/model/run-argument.ts";
import { parseTime } from "../../src/model/time.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import {
  type DegenerateArchive,
  degenerateArchive,
  type PartialRow,
} from "../fixtures/degenerate/degenerate-archive.ts";
import { at, bars, equity, fill, transfer } from "../fixtures/degenerate/degenerate-rows.ts";

/** Ahead of 1970, and a Monday. */
const begin = parseTime("1969-12-29T00:00:00Z");
/** Of the same weekday, behind it. */
const later = parseTime("2021-12-27T00:00:00Z");

/** A run whose equity rows are at midnight, with trades that end in an hour of one day each. */
const runFrom = (start: bigint) => {
  const moved = (rows: readonly PartialRow[]) =>
    rows.map((row) => ({
      ...row,
      ts_event: BigInt(row.ts_event!) - at(0) + start,
      ...(row.ts_open === undefined ? {} : { ts_open: BigInt(row.ts_open) - at(0) + start }),
    }));
  const values = [100, 101, 103, 102];
  // each row at the midnight that ends its day, and one a nanosecond later
  const points = [...equity(values, { from: 24 }), ...equity([99], { from: 72 })];
  points[4] = { ...points[4]!, ts_event: at(96) + 1n };
  return {
    name: `a run from ${start}`,
    rows: {
      events: moved([transfer(0, 100)]),
      equity: moved(points),
      fills: moved([fill(2, "BUY", 50), fill(3.5, "SELL", 51), fill(30, "BUY", 50), fill(47.5, "SELL", 51)]),
      bars: moved(bars(Array.from({ length: 96 }, () => 50))),
      metrics: moved([
        { ts_event: at(72), name: "total_return", value: 0.03, window: "month", currency: "USD" },
      ]).map((row) => ({ ...row, account: "main", portfolio: "core" })),
    },
  };
};

let before: DegenerateArchive;
let after: DegenerateArchive;
beforeAll(async () => {
  before = await degenerateArchive(runFrom(begin));
  after = await degenerateArchive(runFrom(later));
});
afterAll(async () => {
  await before[Symbol.asyncDispose]();
  await after[Symbol.asyncDispose]();
});

async function stdoutOf(archive: DegenerateArchive, ...args: string[]): Promise<string> {
  return (await runInside([args[0]!, "--archive", archive.dir, ...args.slice(1)])).stdout;
}

async function daysOf(archive: DegenerateArchive, session: string): Promise<string[]> {
  const sql = `SELECT day FROM session_returns('alpha-1', '2022-01-01-001', session := '${session}')`;
  return JSON.parse(await stdoutOf(archive, "query", sql, "--format", "json")).map(
    ({ day }: { day: string }) => day,
  );
}

describe("before 1970", () => {
  test("a row at midnight belongs to the day that ends, and one a nanosecond later to the next", async () => {
    expect(await daysOf(before, "utc")).toEqual([
      ...["1969-12-29", "1969-12-30", "1969-12-31", "1970-01-01", "1970-01-02"],
    ]);
    expect(await daysOf(before, "Europe/Berlin 01:00")).toEqual(await daysOf(before, "utc"));
  });

  test("trades are of the hour and the weekday of their exit", async () => {
    const parts = async (archive: DegenerateArchive) => {
      const told = await stdoutOf(archive, "metrics", formatRun(archive.ref), "--json");
      return metricsSchema
        .parse(JSON.parse(told))
        .runs[0]!.sections.find(({ name }) => name === "trades")!
        .groups[0]!.parts.filter(({ by }) => by === "hour" || by === "weekday")
        .map(({ by, key }) => [by, key]);
    };
    expect(await parts(before)).toEqual([
      ["hour", "03"],
      ["hour", "23"],
      ["weekday", "Monday"],
      ["weekday", "Tuesday"],
    ]);
    expect(await parts(before)).toEqual(await parts(after));
  });

  test("a month that a reported figure ends at midnight begins with the month that is over", async () => {
    const seventh = async (archive: DegenerateArchive) => {
      const { checks } = (
        JSON.parse(await stdoutOf(archive, "reconcile", formatRun(archive.ref), "--json")) as ReconcileReport
      ).runs[0]!;
      const { verdict, rows, breaks } = checks[6]!;
      return { verdict, rows, breaks };
    };
    expect(await seventh(before)).toEqual({ verdict: "HOLDS", rows: 1, breaks: 0 });
  });
});
