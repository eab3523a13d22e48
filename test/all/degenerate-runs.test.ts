import { expect, test } from "vitest";
import { figureSchema } from "../../src/analytics/figure.ts";
import { sections } from "../../src/analytics/metrics/sections.ts";
import type { MetricsOptions } from "../../src/analytics/section/metrics-options.ts";
import type { SectionFigures } from "../../src/analytics/section/section.ts";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { macroWorld } from "../fixtures/analytics/macro-rows.ts";
import { type Row, tradedRun } from "../fixtures/trades/trade-world.ts";

const day = 86_400_000_000_000n;
const start = 1_641_038_400_000_000_000n;

const options: MetricsOptions = {
  ...{ session: "utc", fill: false, periods: null, rf: 0, log: false, base: "first", benchmark: null },
  ...{
    rates: null,
    psrBenchmark: 0,
    bookAgeMs: 60_000,
    horizons: [1, 5, 20],
    omegaReturn: 0,
    group: "flat",
    fillOrder: "auto",
    window: 3,
    instruments: null,
  },
};

/** Equity rows a day apart. */
function equity(values: readonly number[], more: Row = {}): Row[] {
  return values.map((value, index) => ({
    ...{ instance_id: tradedRun.instanceId, run_id: tradedRun.runId, seq: index },
    ...{ ts_event: start + BigInt(index) * day, account: "A", portfolio: "P", currency: "USD" },
    ...{ equity: value, cash: value, position_value: 0 },
    ...more,
  }));
}

async function figuresOf(
  rows: Partial<Record<TableName, readonly Row[]>>,
): Promise<Record<string, SectionFigures>> {
  await using world = await macroWorld(rows);
  const manifest = { tables: { events: { state: "COMPLETE" } } } as unknown as Manifest;
  const views = { connection: world.connection, showOnly: async () => {} };
  const read = async (section: (typeof sections)[number]) =>
    [
      section.name,
      await section.read({
        ...{ run: tradedRun, manifest, views, connection: world.connection },
        ...{ exactTypes: world.types, options, benchmarkBars: null, trades: () => world.read() },
      }),
    ] as const;
  const told: Record<string, SectionFigures> = {};
  for (const section of sections) {
    const [name, figures] = await read(section);
    told[name] = figures;
    for (const { figures: own, parts } of figures.groups) {
      for (const figure of [own, ...parts.map((part) => part.figures)].flatMap(Object.values)) {
        expect(figureSchema.safeParse(figure).success, JSON.stringify(figure)).toBe(true);
        expect(Object.is(figure.value, -0)).toBe(false);
      }
    }
  }
  return told;
}

const performanceOf = ({ performance }: Record<string, SectionFigures>) => performance!.groups[0]!.figures;

test("a run without rows has no groups, and says that there are no fills", async () => {
  const told = await figuresOf({});
  expect(told.performance!.groups).toEqual([]);
  expect(told.trades).toEqual({ groups: [], notes: ["no fills"] });
});

test("a run of one point has no return, which is every figure's reason", async () => {
  const figures = performanceOf(await figuresOf({ equity: equity([100]) }));
  expect(Object.keys(figures).length).toBeGreaterThan(30);
  expect(Object.values(figures).every(({ value }) => value === null)).toBe(true);
  expect(figures.total_return).toEqual({ value: null, reason: "no return" });
});

test("constant equity has no deviation, no drawdown and no losing period, and no 0 in their place", async () => {
  const told = await figuresOf({ equity: equity([100, 100, 100, 100, 100]) });
  const figures = performanceOf(told);
  expect(figures.total_return).toMatchObject({ value: 0, n: 4 });
  expect(figures.volatility).toMatchObject({ value: 0 });
  expect(figures.sharpe).toEqual({ value: null, reason: "no return differs from another" });
  expect(figures.calmar).toEqual({ value: null, reason: "no drawdown" });
  expect(figures.omega).toEqual({ value: null, reason: "no losing period" });
  expect(told.drawdowns!.notes).toEqual(["no drawdown"]);
});

test("a run that only wins has no losing period", async () => {
  const figures = performanceOf(await figuresOf({ equity: equity([100, 101, 103, 104, 107]) }));
  for (const name of ["sortino", "omega", "tail_ratio"]) {
    expect(figures[name]).toEqual({ value: null, reason: "no losing period" });
  }
});

test("equity that touches zero ends the series there", async () => {
  const figures = performanceOf(await figuresOf({ equity: equity([100, 50, 0, 80, 90]) }));
  expect(figures.total_return).toMatchObject({ value: -1, n: 2 });
  expect(figures.sharpe).toEqual({
    value: null,
    reason: "equity reached zero at 2022-01-03T12:00:00.000000000Z",
  });
});

test("accounts, portfolios and currencies are kept apart", async () => {
  const other = equity([50, 60, 66], { account: "B", currency: "EUR" });
  const { performance } = await figuresOf({ equity: [...equity([100, 110]), ...other] });
  expect(
    performance!.groups.map(({ account, currency, figures }) => [
      account,
      currency,
      figures.total_return!.value,
    ]),
  ).toEqual([
    ["A", "USD", expect.closeTo(0.1, 12)],
    ["B", "EUR", expect.closeTo(0.32, 12)],
  ]);
});

test("a month without rows is there, as null", async () => {
  const rows = equity([100, 110, 121]).map((row, index) => ({
    ...row,
    ts_event: start + BigInt([0, 1, 70][index]!) * day,
  }));
  const { monthly } = await figuresOf({ equity: rows });
  expect(monthly!.groups[0]!.parts.map(({ key, figures }) => [key, figures.return!.value])).toEqual([
    ["2022-01", expect.closeTo(0.1, 12)],
    ["2022-02", null],
    ["2022-03", expect.closeTo(0.1, 12)],
  ]);
});

test("a drawdown lasts from its peak to its recovery, an open one to the end", async () => {
  const { drawdowns } = await figuresOf({ equity: equity([100, 90, 95, 100, 120, 108]) });
  const [first, second] = drawdowns!.groups[0]!.parts.map(({ figures }) => figures);
  expect(first).toMatchObject({
    depth: { value: expect.closeTo(-0.1, 12), from: "2022-01-01T12:00:00.000000000Z" },
    duration: { value: 259_200, convention: "peak to recovery" },
    points: { value: 3 },
    to_recovery: { value: 172_800 },
  });
  expect(second).toMatchObject({
    duration: { value: 86_400, convention: "open at the end" },
    to_recovery: { value: null, reason: "not recovered by the end" },
  });
});

test("a deposit during the run is no return, and is told", async () => {
  const deposit = {
    ...{ instance_id: tradedRun.instanceId, run_id: tradedRun.runId, seq: 1, kind: "account.deposit" },
    ...{ ts_event: start + day / 2n, account: "A", portfolio: "P", currency: "USD", amount: 50 },
  };
  const { performance } = await figuresOf({ equity: equity([100, 150, 165]), events: [deposit] });
  expect(performance!.groups[0]!.figures.total_return!.value).toBeCloseTo(0.1, 12);
  expect(performance!.notes).toEqual([
    "deposits and withdrawals in 1 period are not returns: +50 USD by 2022-01-02T12:00:00.000000000Z",
  ]);
});
