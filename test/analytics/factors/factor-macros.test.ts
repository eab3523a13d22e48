// @module-tag slow
import { afterEach, describe, expect, test } from "vitest";
import { macroRows, macroWorld } from "../../fixtures/analytics/macro-rows.ts";
import type { Row, TradeWorld } from "../../fixtures/trades/trade-world.ts";

const minute = 60_000_000_000n;
const start = 1_641_038_400_000_000_000n;
const at = (bar: number) => start + BigInt(bar) * minute;

let world: TradeWorld;
afterEach(() => world[Symbol.asyncDispose]());

/** Closes that no rule tells from one to the next. */
function closesOf(symbol: number, bars = 60): number[] {
  let state = 7 + symbol;
  let close = 1_000;
  return Array.from({ length: bars }, () => {
    state = (state * 48_271) % 2_147_483_647;
    close = Math.max(1, close + (state % 41) - 20);
    return close;
  });
}

function barRows(symbol: string, closes: readonly number[], more: Row = {}): Row[] {
  return closes.map((close, bar) => ({
    ...{ ts_event: at(bar), symbol, venue: "V", interval_ns: minute, close },
    ...more,
  }));
}

function factorRows(symbol: string, values: readonly number[], more: Row = {}): Row[] {
  return values.map((value, bar) => ({
    ...{ ts_event: at(bar), symbol, venue: "V", portfolio: "P", factor: "f", value },
    ...more,
  }));
}

const returnOf = (closes: readonly number[], from: number, horizon = 1) =>
  closes[from + horizon] === undefined ? Number.NaN : closes[from + horizon]! / closes[from]! - 1;

/** A world of so many symbols with a factor that is the return from `shift` bars later on. */
async function knowing(symbols: number, shift: number): Promise<void> {
  const closes = Array.from({ length: symbols }, (_, symbol) => closesOf(symbol));
  const factors = closes.flatMap((own, symbol) =>
    factorRows(
      `S${symbol}`,
      own.map((_, bar) => (bar + shift < 0 ? Number.NaN : returnOf(own, bar + shift))),
    ),
  );
  world = await macroWorld({ bars: closes.flatMap((own, symbol) => barRows(`S${symbol}`, own)), factors });
}

async function figures(macro: string, options = ""): Promise<Record<string, unknown>[]> {
  const rows = await macroRows(world, macro, options);
  const wrong = rows.filter(({ value, reason }) =>
    value === null
      ? reason === null || reason === "not a finite number"
      : reason !== null || !Number.isFinite(value) || Object.is(value, -0),
  );
  expect(wrong).toEqual([]);
  return rows;
}

const icOf = async (options = "horizons := [1]") =>
  (await figures("factor_ic", options)).filter(({ metric }) => metric === "ic");

describe("a factor that is the next bar's return", () => {
  test("has an IC of 1 across symbols, at every instant", async () => {
    await knowing(6, 0);
    expect(await icOf()).toMatchObject([{ symbol: null, value: expect.closeTo(1, 12), n: 59 }]);
    const series = await macroRows(world, "factor_ic_series", "horizons := [1]");
    expect(series).toHaveLength(59);
    expect(series.every(({ ic, symbols }) => Math.abs(Number(ic) - 1) < 1e-12 && symbols === 6)).toBe(true);
  });

  test("has an IC of 1 through time, for each of four symbols", async () => {
    await knowing(4, 0);
    const found = await icOf();
    expect(found.map(({ symbol }) => symbol)).toEqual(["S0", "S1", "S2", "S3"]);
    for (const row of found) {
      expect(row).toMatchObject({
        value: expect.closeTo(1, 12),
        n: 59,
        convention: "rank, through time",
      });
    }
    const t = (await figures("factor_ic", "horizons := [1]")).filter(({ metric }) => metric === "ic_t");
    expect(t.every(({ reason }) => reason === "the ranks are the same")).toBe(true);
  });

  test.each([-1, 1])("shifted by %i bars has not", async (shift) => {
    await knowing(6, shift);
    expect(Math.abs(Number((await icOf())[0]!.value))).toBeLessThan(0.3);
  });

  test("leads the highest quantile to the highest return", async () => {
    await knowing(10, 0);
    const rows = await figures("factor_quantiles", "horizons := [1]");
    const returns = rows
      .filter(({ metric }) => metric === "quantile_return")
      .map(({ value }) => Number(value));
    expect(returns).toHaveLength(5);
    expect([...returns].sort((a, b) => a - b)).toEqual(returns);
    const spread = rows.find(({ metric }) => metric === "quantile_spread");
    expect(spread!.value).toBeCloseTo(returns[4]! - returns[0]!, 12);
  });
});

test("a value between two closes belongs to the later one, and knows nothing of the return", async () => {
  const closes = closesOf(0);
  const half = minute / 2n;
  // what the bar that is going on will have brought by its close: known at no later price
  const factors = factorRows(
    "S0",
    closes.map((_, bar) => returnOf(closes, bar)),
  ).map((row) => ({ ...row, ts_event: BigInt(row.ts_event!) + half }));
  world = await macroWorld({ bars: barRows("S0", closes), factors });
  expect(Math.abs(Number((await icOf())[0]!.value))).toBeLessThan(0.3);
  const pairs = await world.connection.runAndReadAll(
    "SELECT epoch_ns(ts), value FROM factor_pairs('alpha-1', '2022-01-01-001', horizons := [1]) ORDER BY ts LIMIT 1",
  );
  expect(pairs.getRows()).toEqual([[at(1), returnOf(closes, 0)]]);
});

test("over several bars, returns through time do not overlap, and the convention says so", async () => {
  const closes = closesOf(0, 61);
  const values = closes.map((_, bar) => returnOf(closes, bar, 5));
  world = await macroWorld({ bars: barRows("S0", closes), factors: factorRows("S0", values) });
  expect(await icOf("horizons := [5]")).toMatchObject([
    {
      n: 12,
      value: expect.closeTo(1, 12),
      convention: "rank, through time, one bar in 5, so that returns do not overlap",
    },
  ]);
});

test("ties have the mean of their ranks", async () => {
  const closes = [100, 101, 103, 104, 109, 111, 110, 120];
  const values = [1, 1, 2, 2, 3, 1, 3, 3];
  world = await macroWorld({ bars: barRows("S0", closes), factors: factorRows("S0", values) });
  const ranks = (list: readonly number[]) =>
    list.map(
      (one) =>
        list.filter((other) => other < one).length + (list.filter((other) => other === one).length + 1) / 2,
    );
  const a = ranks(values.slice(0, 7));
  const b = ranks(closes.slice(0, 7).map((_, bar) => returnOf(closes, bar)));
  const mean = (list: readonly number[]) => list.reduce((sum, one) => sum + one, 0) / list.length;
  const [ma, mb] = [mean(a), mean(b)];
  const cov = mean(a.map((one, index) => (one - ma) * (b[index]! - mb)));
  const expected =
    cov / Math.sqrt(mean(a.map((one) => (one - ma) ** 2)) * mean(b.map((one) => (one - mb) ** 2)));
  expect((await icOf())[0]!.value).toBeCloseTo(expected, 12);
});

describe("coverage", () => {
  test("counts bars with a finite value, and what is none", async () => {
    const values = [Number.NaN, 1, 2, Number.POSITIVE_INFINITY, 4, Number.NEGATIVE_INFINITY, 6, 7, 8, 9];
    world = await macroWorld({
      bars: barRows("S0", closesOf(0, 20)),
      factors: factorRows("S0", values),
    });
    const own = (await figures("factor_coverage")).filter(({ symbol }) => symbol === "S0");
    const byMetric = Object.fromEntries(own.map(({ metric, value }) => [String(metric), value]));
    expect(byMetric).toMatchObject({
      ...{ samples: 10, nan_values: 1, infinite_values: 2, coverage: 7 / 20 },
      ...{ minimum: 1, median: 6, maximum: 9 },
    });
  });

  test("has the same shape for values that are large and near each other as for their differences", async () => {
    // exact in doubles, so that both factors differ by a constant and nothing else
    const small = closesOf(0).map((close) => close / 1024);
    const named = (factor: string, values: readonly number[]) => factorRows("S0", values, { factor });
    world = await macroWorld({
      bars: barRows("S0", closesOf(0)),
      factors: [
        ...named("small", small),
        ...named(
          "large",
          small.map((value) => value + 2 ** 20),
        ),
      ],
    });
    const rows = await figures("factor_coverage");
    const shape = (factor: string) =>
      ["deviation", "skewness", "kurtosis"].map((name) =>
        Number(
          rows.find((row) => row.factor === factor && row.metric === name && row.symbol === "S0")!.value,
        ),
      );
    for (const [index, value] of shape("large").entries()) {
      expect(Math.abs(value / shape("small")[index]! - 1)).toBeLessThan(1e-9);
    }
  });
});

const reasonsOf = (rows: readonly Record<string, unknown>[]) => new Set(rows.map(({ reason }) => reason));

describe("a factor without figures says why:", () => {
  test("all NaN", async () => {
    world = await macroWorld({
      bars: barRows("S0", closesOf(0)),
      factors: factorRows(
        "S0",
        closesOf(0).map(() => Number.NaN),
      ),
    });
    expect(reasonsOf(await figures("factor_ic"))).toEqual(new Set(["no finite value"]));
    const coverage = await figures("factor_coverage");
    expect(coverage.find(({ metric }) => metric === "coverage")).toMatchObject({ value: 0, reason: null });
    expect(coverage.find(({ metric }) => metric === "mean")).toMatchObject({ reason: "no finite value" });
  });

  test("no bars", async () => {
    world = await macroWorld({ factors: factorRows("S0", [1, 2, 3, 4, 5]) });
    expect(reasonsOf(await figures("factor_ic"))).toEqual(new Set(["no bars of the symbol"]));
    const coverage = await figures("factor_coverage");
    expect(coverage.find(({ metric }) => metric === "coverage")).toMatchObject({
      reason: "no bars of the symbol",
    });
    expect(coverage.find(({ metric }) => metric === "median")).toMatchObject({ value: 3 });
  });

  test("bars of two intervals, of which none is named", async () => {
    const closes = closesOf(0);
    world = await macroWorld({
      bars: [...barRows("S0", closes), ...barRows("S0", closes, { interval_ns: 5n * minute })],
      factors: factorRows("S0", closes),
    });
    expect(reasonsOf(await figures("factor_ic"))).toEqual(
      new Set(["several bars of the symbol, and no row says which are meant"]),
    );
  });

  test("constant, through time and across symbols", async () => {
    const symbols = ["S0", "S1", "S2", "S3", "S4"];
    const bars = symbols.flatMap((symbol, index) => barRows(symbol, closesOf(index)));
    const factors = symbols.flatMap((symbol) =>
      factorRows(
        symbol,
        closesOf(0).map(() => 0.1),
      ),
    );
    world = await macroWorld({ bars, factors });
    expect((await icOf())[0]).toMatchObject({
      symbol: null,
      reason: "no time at which both factor and return vary",
    });
    const [through] = await icOf("horizons := [1], min_symbols := 6");
    expect(through).toMatchObject({ symbol: "S0", reason: "no value differs from another" });
    const coverage = await figures("factor_coverage");
    const byMetric = new Map(coverage.map((row) => [row.metric, row]));
    expect(byMetric.get("deviation")).toMatchObject({ value: 0 });
    expect(byMetric.get("skewness")).toMatchObject({ reason: "no value differs from another" });
    expect(byMetric.get("autocorrelation")).toMatchObject({ reason: "no value differs from another" });
    await figures("factor_quantiles");
  });

  test("one bar, one symbol, values beyond what squares can hold", async () => {
    world = await macroWorld({
      bars: barRows("S0", [100]),
      factors: factorRows("S0", [1e300]),
    });
    expect(reasonsOf(await figures("factor_ic"))).toEqual(new Set(["fewer than 3 values with a return"]));
    expect(reasonsOf(await figures("factor_quantiles"))).toEqual(
      new Set(["no time has 5 symbols with both factor and return"]),
    );
    const coverage = await figures("factor_coverage");
    expect(coverage.find(({ metric }) => metric === "mean")).toMatchObject({ reason: "values beyond 1e70" });
  });

  test("prices of zero and none at all", async () => {
    world = await macroWorld({
      bars: barRows("S0", [0, 0, 100, 0, 0, 1, 2, 3]),
      factors: factorRows("S0", [1, 2, 3, 4, 5, 6, 7, 8]),
    });
    await figures("factor_ic");
    world = await macroWorld();
    expect(await figures("factor_ic")).toEqual([]);
    expect(await figures("factor_quantiles")).toEqual([]);
    expect(await figures("factor_coverage")).toEqual([]);
  });
});

test("a horizon that is no number of bars is refused", async () => {
  await knowing(1, 0);
  await expect(macroRows(world, "factor_ic", "horizons := [0]")).rejects.toThrow(
    "horizons must be whole numbers of bars from 1",
  );
});
