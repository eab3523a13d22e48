import { beforeEach, describe, expect, it } from "vitest";
import { EquityWorld, type ToldFigure } from "../fixtures/analytics/equity-world.ts";

let world: EquityWorld;

beforeEach(async () => {
  world = await EquityWorld.open();
});

type Point = readonly [string, number];
/** Points at noon of days of January 2022. */
const daily = (...values: number[]): Point[] =>
  values.map((value, day) => [`2022-01-${String(day + 1).padStart(2, "0")} 12:00:00`, value]);

/** Figures, of which each is a finite number, not -0, or null with a reason. */
async function sound(options = "", currency?: string): Promise<Record<string, ToldFigure>> {
  const figures = await world.figures(options, currency);
  const wrong = Object.entries(figures).filter(([, { value, reason }]) =>
    value === null
      ? reason === null || reason === "not a finite number"
      : reason !== null || !Number.isFinite(value) || Object.is(value, -0),
  );
  expect(wrong).toEqual([]);
  expect(Object.keys(figures).length === 0 || Object.keys(figures).length === 34).toBe(true);
  return figures;
}

const first = "base := 'first'";
const none = (reason: string) => expect.objectContaining({ value: null, reason });
const about = (value: number) => expect.objectContaining({ value: expect.closeTo(value, 12), reason: null });

describe("a run", () => {
  it("without equity has no figures", async () => {
    expect(await sound()).toEqual({});
    expect(await world.rows("session_returns")).toEqual([]);
    expect(await world.rows("drawdowns")).toEqual([]);
    expect(await world.rows("monthly")).toEqual([]);
    expect(await world.rows("rolling")).toEqual([]);
  });

  it("with one point has no return", async () => {
    await world.equity(daily(100));
    const figures = await sound(first);
    expect(figures.total_return).toEqual(none("no return"));
    expect(figures.max_drawdown).toEqual(none("no return"));
    expect(figures.sharpe).toEqual(none("fewer than 2 returns"));
    expect(figures.psr).toEqual(none("fewer than 4 returns"));
  });

  it("with one return has no figure of several", async () => {
    await world.equity(daily(100, 110));
    const figures = await sound(first);
    expect(figures.total_return).toEqual(about(0.1));
    expect(figures.volatility).toEqual(none("fewer than 2 returns"));
    expect(figures.skewness).toEqual(none("fewer than 3 returns"));
    expect(figures.kurtosis).toEqual(none("fewer than 4 returns"));
  });

  it("with constant equity has no ratio", async () => {
    await world.equity(daily(100, 100, 100, 100, 100));
    const figures = await sound(first);
    expect(figures.total_return).toEqual(about(0));
    expect(figures.volatility).toEqual(about(0));
    expect(figures.max_drawdown).toEqual(about(0));
    expect(figures.sharpe).toEqual(none("no return differs from another"));
    expect(figures.sortino).toEqual(none("no losing period"));
    expect(figures.calmar).toEqual(none("no drawdown"));
    expect(figures.stability).toEqual(none("wealth does not change"));
  });

  it("with the same return every day has no ratio of its deviation", async () => {
    await world.equity(daily(64, 96, 144, 216, 324));
    const figures = await sound(first);
    expect(figures.volatility).toEqual(about(0));
    expect(figures.sharpe).toEqual(none("no return differs from another"));
    expect(figures.skewness).toEqual(none("no return differs from another"));
  });

  it("that always wins has no losing period and no drawdown", async () => {
    await world.equity(daily(100, 101, 103, 104, 109));
    const figures = await sound(first);
    for (const metric of ["sortino", "omega", "tail_ratio"]) {
      expect(figures[metric]).toEqual(none("no losing period"));
    }
    expect(figures.calmar).toEqual(none("no drawdown"));
    expect(figures.time_under_water).toEqual(about(0));
    expect(await world.rows("drawdowns", first)).toEqual([]);
  });

  it("that always loses is under water from its first point on, in one drawdown that is open", async () => {
    await world.equity(daily(100, 99, 97, 96, 90));
    const figures = await sound(first);
    expect(figures.omega).toEqual(about(0));
    expect(figures.max_drawdown).toEqual(about(-0.1));
    expect(figures.time_under_water!.value).toBe(0.75);
    expect(await world.rows("drawdowns", first)).toMatchObject([
      { is_open: true, recovery_ts: null, seconds: 4 * 86_400, points: 4n },
    ]);
  });

  it.each([
    ["touches", 0],
    ["crosses", -20],
  ])("whose equity %s zero ends there, whatever comes after", async (_, low) => {
    await world.equity(daily(100, 80, low, 50, 200));
    const figures = await sound(first);
    expect(figures.total_return).toEqual(about(low / 100 - 1));
    expect(figures.max_drawdown).toEqual(about(low / 100 - 1));
    const zero = none("equity reached zero at 2022-01-03T12:00:00.000000000Z");
    for (const metric of ["cagr", "sharpe", "sortino", "stability", "psr"]) {
      const { reason } = figures[metric]!;
      expect(metric === "psr" ? none("fewer than 4 returns") : zero).toEqual({ ...figures[metric], reason });
    }
    expect(await world.rows("session_returns", first)).toHaveLength(2);
    await sound(`${first}, log_returns := true`);
    await sound(`${first}, session := 'bars'`);
  });

  it("whose equity is zero within a session ends in that session", async () => {
    await world.equity([
      ...daily(100, 110),
      ["2022-01-03 10:00:00", 0],
      ["2022-01-03 11:00:00", 120],
      ["2022-01-04 12:00:00", 130],
    ]);
    const figures = await sound(first);
    expect(figures.total_return).toEqual(about(-1));
    expect(figures.cagr).toEqual(none("equity reached zero at 2022-01-03T10:00:00.000000000Z"));
  });

  it("with gaps has returns for the days that it has rows of, and for all where they are filled", async () => {
    await world.equity([
      ["2022-01-28 12:00:00", 100],
      ["2022-01-31 12:00:00", 110],
      ["2022-04-01 12:00:00", 121],
    ]);
    expect((await sound(first)).total_return!.n).toBe(2);
    const filled = await sound(`${first}, fill := true`);
    expect(filled.total_return!.n).toBe(63);
    expect(filled.total_return).toEqual(about(0.21));
    const months = await world.rows("monthly", first);
    expect(months.map(({ month, ret }) => [month, ret])).toEqual([
      [1, expect.closeTo(0.1, 12)],
      [2, null],
      [3, null],
      [4, expect.closeTo(0.1, 12)],
    ]);
  });

  it("with two rows at one instant counts the later one", async () => {
    await world.equity([...daily(100, 300), ["2022-01-02 12:00:00", 110]]);
    expect(await world.rows("session_returns", `${first}, session := 'bars'`)).toHaveLength(1);
    expect((await sound(first)).total_return).toEqual(about(0.1));
  });

  it("has a row at the cut in the session that ends", async () => {
    await world.equity([
      ["2022-01-01 12:00:00", 100],
      ["2022-01-02 00:00:00", 110],
      ["2022-01-02 00:00:00.000000001", 121],
      ["2022-07-01 21:00:00", 130],
      ["2022-07-01 21:00:01", 140],
    ]);
    const utc = await world.rows("session_points", first, "i");
    expect(utc.map(({ value }) => value)).toEqual([110, 121, 140]);
    const newYork = await world.rows("session_points", `${first}, session := 'America/New_York 17:00'`, "i");
    expect(newYork.map(({ value, day }) => [value, (day as Date | null)?.getUTCDate()])).toEqual([
      [100, undefined],
      [121, 2],
      [130, 1],
      [140, 2],
    ]);
  });

  it("is refused a base, a zone and a count of periods that there are not", async () => {
    await world.equity(daily(100, 110));
    await expect(world.rows("performance", "base := 'last'")).rejects.toThrow(
      "base must be 'deposit' or 'first'",
    );
    await expect(world.rows("performance", "session := 'Mars/Olympus 17:00'")).rejects.toThrow(
      "Mars/Olympus",
    );
    await expect(world.rows("performance", "session := 'utc 25:00'")).rejects.toThrow("utc 25:00");
    await expect(world.rows("performance", "periods := 'many'")).rejects.toThrow("many");
  });
});

describe("deposits and withdrawals", () => {
  const opening = [["2022-01-01 00:00:00", 100]] as [string, number][];

  it("at or before the first row are the base point", async () => {
    await world.transfers(opening);
    await world.equity(daily(99, 110));
    const figures = await sound();
    expect(figures.total_return).toMatchObject({ value: expect.closeTo(0.1, 12), n: 2 });
    expect((await sound(first)).total_return!.n).toBe(1);
  });

  it("after it are flows, not returns", async () => {
    await world.transfers([...opening, ["2022-01-02 06:00:00", 50], ["2022-01-03 06:00:00", -80]]);
    await world.equity(daily(110, 160, 80));
    const returns = await world.rows("session_returns");
    expect(returns.map(({ ret, flow }) => [ret, flow])).toEqual([
      [expect.closeTo(0.1, 12), 0],
      [expect.closeTo(0, 12), 50],
      [expect.closeTo(0, 12), -80],
    ]);
    const figures = await sound();
    expect(figures.total_return).toEqual(about(0.1));
    expect(figures.max_drawdown).toEqual(about(0));
  });

  it("compound with the returns around them", async () => {
    await world.transfers([...opening, ["2022-01-02 06:00:00", 100]]);
    await world.equity(daily(110, 220, 110, 121));
    expect((await sound()).total_return).toEqual(about(1.1 * (120 / 110) * 0.5 * 1.1 - 1));
  });

  it("on a day without rows count at the next row, where days are filled", async () => {
    await world.transfers([...opening, ["2022-01-02 06:00:00", 100]]);
    await world.equity([
      ["2022-01-01 12:00:00", 100],
      ["2022-01-04 12:00:00", 200],
    ]);
    const figures = await sound("fill := true");
    expect(figures.total_return).toMatchObject({ value: expect.closeTo(0, 12), n: 4 });
    expect(figures.volatility).toEqual(about(0));
  });

  it("on the account are those of its portfolio", async () => {
    await world.transfers([...opening, ["2022-01-02 06:00:00", 500]], { portfolio: "" });
    await world.equity(daily(110, 610));
    expect((await sound()).total_return).toEqual(about(0.1));
  });

  it.each([
    ["of another currency", { currency: "EUR" }],
    ["of another portfolio", { portfolio: "side" }],
  ])("%s than any equity are refused, with the event", async (_, of) => {
    await world.transfers(opening, of);
    await world.equity(daily(110, 610));
    await expect(world.rows("performance")).rejects.toThrow(
      "the event with seq 0, account.deposit, is of account main",
    );
  });

  it("on the account are refused where it has several portfolios", async () => {
    await world.transfers(opening, { portfolio: "" });
    await world.equity(daily(110, 610));
    await world.equity(daily(110, 610), { portfolio: "side" });
    await expect(world.rows("performance")).rejects.toThrow("which no equity row has");
  });

  it.each(["0.1", "0.07", "33.33", "5000.37"])(
    "of %s leave a run that stands still at rest, to the last digit",
    async (cents) => {
      const amount = Number(cents);
      await world.transfers([
        ["2022-01-01 00:00:00", 1000.1],
        ["2022-01-03 06:00:00", amount],
        ["2022-01-05 06:00:00", amount],
      ]);
      const inCents = (value: number) => Math.round(value * 100);
      const values = [
        100_010,
        100_010,
        inCents(1000.1 + amount),
        inCents(1000.1 + amount),
        inCents(1000.1 + 2 * amount),
      ];
      await world.equity(
        values.map((value, day) => [`2022-01-0${day + 1} 12:00:00`, (value / 100).toFixed(2)]),
      );
      const figures = await sound();
      expect(figures.total_return!.value).toBe(0);
      expect(figures.max_drawdown!.value).toBe(0);
      expect(figures.sharpe).toEqual(none("no return differs from another"));
      expect(await world.rows("drawdowns")).toEqual([]);
    },
  );

  it("that take all end the series, without a loss", async () => {
    await world.transfers([...opening, ["2022-01-03 06:00:00", -110]]);
    await world.equity(daily(100, 110, 0, 0));
    const figures = await sound();
    expect(figures.total_return).toMatchObject({ value: expect.closeTo(0.1, 12), n: 3 });
    expect(figures.max_drawdown).toEqual(about(0));
  });
});

it("several currencies are series of their own", async () => {
  await world.equity(daily(100, 110, 121));
  await world.equity(daily(100, 90, 81), { currency: "EUR" });
  expect((await sound(first, "USD")).total_return).toEqual(about(0.21));
  expect((await sound(first, "EUR")).total_return).toEqual(about(-0.19));
});

describe("returns that rounding alone sets apart", () => {
  // a tenth of a percent a day, to the ninth decimal
  const steady = (begin: number) =>
    daily(...[0, 1, 2, 3, 4, 5].map((day) => Number((begin * 1.001 ** day).toFixed(9))));

  it.each([100_000, 1, 0.001])("are the same, from an equity of %d", async (begin) => {
    await world.equity(steady(begin));
    const figures = await sound(first);
    expect(figures.total_return!.value).toBeCloseTo(1.001 ** 5 - 1, 6);
    expect(figures.volatility).toEqual(about(0));
    for (const metric of ["sharpe", "skewness", "kurtosis", "psr"]) {
      expect(figures[metric]).toEqual(none("no return differs from another"));
    }
    const rows = await world.rows("rolling", `${first}, window_size := 3`);
    expect(rows.map(({ sharpe }) => sharpe)).toEqual([null, null, null, null, null]);
    expect(rows.at(-1)!.volatility).toBe(0);
  });

  it("are no losing period where they are the rate without risk", async () => {
    await world.equity(steady(1_000));
    const figures = await sound(`${first}, rf := ${1.001 ** 252 - 1}`);
    expect(figures.sortino).toEqual(none("no losing period"));
  });

  it("give no slope where they are the benchmark's", async () => {
    await world.equity(daily(100, 110, 99, 105, 104, 107));
    await world.benchmark(steady(50));
    expect((await sound(first)).beta).toEqual(none("the benchmark does not change"));
  });

  it("are told from those that differ by more", async () => {
    await world.equity(daily(100_000, 100_100, 100_200.1, 100_300.300_2));
    expect((await sound(first)).sharpe!.value).toBeGreaterThan(1e6);
  });
});

describe("a benchmark among the run's bars", () => {
  const bars = async (venue: string, minutes: number, seq: number) => {
    const step = `${minutes}::BIGINT * 60000000000`;
    await world.connection.run(`INSERT INTO bars BY NAME
      SELECT 'a' AS instance_id, 'r' AS run_id, ${seq} + i AS seq, 'IDX' AS symbol, '${venue}' AS venue,
        ${step} AS interval_ns, make_timestamp_ns(epoch_ns(TIMESTAMP '2022-01-01 11:00:00') + i * ${step}) AS ts_event,
        100 + i % 7 AS close
      FROM range(${(6 * 1440) / minutes}) t(i)`);
  };

  it("is the only one of its symbol, or the one that is named", async () => {
    await world.equity(daily(100, 110, 99, 105));
    await bars("X", 60, 0);
    expect((await sound(`${first}, benchmark := 'IDX'`)).beta!.value).not.toBeNull();
    await bars("X", 30, 1_000);
    await expect(world.figures(`${first}, benchmark := 'IDX'`)).rejects.toThrow(
      /several intervals, in ns: 1800000000000, 3600000000000; name one with benchmark_interval/,
    );
    const named = await sound(`${first}, benchmark := 'IDX', benchmark_interval := 3600000000000`);
    expect(named.beta!.value).not.toBeNull();
    await bars("Y", 60, 2_000);
    await expect(
      world.figures(`${first}, benchmark := 'IDX', benchmark_interval := 3600000000000`),
    ).rejects.toThrow(/several venues: X, Y; name one with benchmark_venue/);
  });
});

describe("a benchmark", () => {
  const against = [
    "alpha",
    "beta",
    "information_ratio",
    "information_ratio_annualised",
    "capture_up",
    "capture_down",
  ];

  it("that is not given is the reason of its figures", async () => {
    await world.equity(daily(100, 110, 121));
    const figures = await sound(first);
    for (const metric of against)
      expect(figures[metric]).toEqual({ value: null, reason: "no benchmark", n: 0 });
  });

  it("that does not overlap is told", async () => {
    await world.equity(daily(100, 110, 121));
    await world.benchmark([["2023-01-01 00:00:00", 5]]);
    const figures = await sound(first);
    for (const metric of against) {
      expect(figures[metric]).toEqual(none("fewer than 2 periods in common with the benchmark"));
    }
  });

  it("that does not change has no slope", async () => {
    await world.equity(daily(100, 110, 115));
    await world.benchmark(daily(5, 5, 5));
    const figures = await sound(first);
    expect(figures.beta).toEqual(none("the benchmark does not change"));
    expect(figures.capture_up).toEqual(none("the benchmark never rises"));
    expect(figures.capture_down).toEqual(none("the benchmark never falls"));
  });

  it("that ends before the run is compared with for as long as it lasts", async () => {
    await world.equity(daily(100, 110, 99, 105, 120, 90));
    await world.benchmark(daily(100, 110, 99, 105));
    const figures = await sound(first);
    expect(figures.beta).toMatchObject({ value: expect.closeTo(1, 12), n: 3 });
    expect(figures.alpha).toEqual(about(0));
  });

  it("that is the run itself has beta 1 and no difference that varies", async () => {
    await world.equity(daily(100, 110, 99, 105));
    await world.benchmark(daily(100, 110, 99, 105));
    const figures = await sound(first);
    expect(figures.beta).toEqual(about(1));
    expect(figures.alpha).toEqual(about(0));
    expect(figures.capture_down).toEqual(about(1));
    expect(figures.information_ratio).toEqual(none("no difference from the benchmark varies"));
  });
});

it("moments of returns that are large against their differences keep their digits", async () => {
  const returns = [0.1, 0.100_002, 0.100_001, 0.1, 0.100_007, 0.100_003];
  const equity = [100_000];
  for (const ret of returns) equity.push(Number((equity.at(-1)! * (1 + ret)).toFixed(9)));
  await world.equity(daily(...equity));
  const own = equity.slice(1).map((value, index) => value / equity[index]! - 1);
  const mean = own.reduce((sum, ret) => sum + ret, 0) / own.length;
  const moment = (power: number) => own.reduce((sum, ret) => sum + (ret - mean) ** power, 0) / own.length;
  const g1 = moment(3) / moment(2) ** 1.5;
  const g2 = moment(4) / moment(2) ** 2 - 3;
  const n = own.length;
  const figures = await sound(first);
  expect(figures.skewness!.value).toBeCloseTo((g1 * Math.sqrt(n * (n - 1))) / (n - 2), 6);
  expect(figures.kurtosis!.value).toBeCloseTo(((n - 1) / ((n - 2) * (n - 3))) * ((n + 1) * g2 + 6), 6);
  expect(figures.skewness_population!.value).toBeCloseTo(g1, 6);
  expect(figures.kurtosis_population!.value).toBeCloseTo(g2, 6);
});
