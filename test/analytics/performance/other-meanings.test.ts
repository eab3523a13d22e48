import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { tradeFigures } from "../../../src/analytics/trades/trade-figures.ts";
import { openSimulator } from "../../../src/simulator/simulator.ts";
import { EquityWorld } from "../../fixtures/analytics/equity-world.ts";
import { inProject } from "../../fixtures/command/project.ts";
import { TradeWorld, tradedRun } from "../../fixtures/trades/trade-world.ts";

const known = z.record(z.string(), z.record(z.string(), z.number().nullable()));
const goldenSchema = z.object({
  seeds: z.object({ equity: z.number() }),
  of_periods: z.record(z.enum(["winning", "losing"]), z.record(z.string(), z.number())),
  absent: z.object({ months: z.record(z.string(), z.number()) }),
  ruined: z.object({ equity: z.array(z.number()), others: known }),
  fallen: z.object({
    equity: z.array(z.number()),
    max_drawdown: z.number(),
    others: z.record(z.string(), z.number()),
  }),
});
const file = inProject("test", "fixtures", "golden", "performance.json");
const golden = goldenSchema.parse(JSON.parse(readFileSync(file, "utf8")));

/** A value a day, from a Monday on. */
const daily = (equity: readonly number[]) =>
  equity.map(
    (value, day) => [new Date(Date.UTC(2022, 0, 3 + day, 20)).toISOString().slice(0, -1), value] as const,
  );

describe("what libraries give of periods under the names of figures of trades is another number", () => {
  let cacheDir: string;
  beforeAll(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), "runvault-meanings-"));
  });
  afterAll(() => rm(cacheDir, { recursive: true, force: true }));

  test.each([
    ["winning", { edge: 20 }],
    ["losing", {}],
  ] as const)("in the %s run", async (name, options) => {
    // the run whose equity lies beside the golden values
    const simulator = await openSimulator({ runs: 1, failed: 0, rows: 30_000, cacheDir, ...options });
    await using world = await TradeWorld.open();
    for (const table of ["fills", "bars", "equity"] as const) await world.load(simulator, tradedRun, table);
    const trades = await world.read();
    const { started, ended } = simulator.span(tradedRun);
    const [only, ...more] = tradeFigures(trades, "flat", started, ended);
    expect(more).toEqual([]);
    const figures: Readonly<Record<string, { readonly value: number | string | null }>> = only!.figures;
    const others = golden.of_periods[name]!;
    expect(Object.keys(others).length).toBeGreaterThan(4);
    const same = Object.entries(others).filter(([figure, other]) => {
      const own = figures[figure]!.value;
      expect(own, figure).not.toBeNull();
      return Math.abs(Number(own) / other - 1) < 1e-6;
    });
    expect(same).toEqual([]);
  });
});

test("a month without rows has no return, where quantstats has 0", async () => {
  const world = await EquityWorld.open();
  const days = daily(Array.from({ length: 120 }, (_, day) => 100 + (day % 7)));
  const isThere = ([ts]: readonly [string, number]) => !/^2022-0[23]/.test(ts);
  await world.equity(days.filter(isThere));
  const months = await world.rows("monthly", "base := 'first'");
  const absent = months.filter(({ ret }) => ret === null);
  const names = absent.map(({ year, month }) => `${year}-${String(month).padStart(2, "0")}`);
  expect(names).toEqual(Object.keys(golden.absent.months));
  expect(Object.values(golden.absent.months)).toEqual([0, 0]);
});

test("a series that falls below zero has no figure that the libraries go on to compute", async () => {
  const world = await EquityWorld.open();
  await world.equity(daily(golden.ruined.equity));
  const figures = await world.figures("base := 'first', periods := 365");
  for (const metric of Object.keys(golden.ruined.others)) {
    expect(figures[metric], metric).toMatchObject({
      value: null,
      reason: expect.stringContaining("equity reached zero at 2022-01-06"),
    });
  }
  expect(golden.ruined.others.sharpe!.quantstats).toBeLessThan(0);
});

test("a series that falls at once has that drawdown, which pyfolio's table leaves out", async () => {
  const world = await EquityWorld.open();
  const { equity, max_drawdown: deepest, others } = golden.fallen;
  await world.equity(daily(equity));
  const { max_drawdown: own } = await world.figures("base := 'first'");
  expect(Math.abs(own!.value! / deepest - 1)).toBeLessThan(1e-9);
  for (const other of Object.values(others)) expect(own!.value).toBeLessThan(other);
});
