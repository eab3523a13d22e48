// @module-tag slow
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { macroRows, macroWorld } from "../../fixtures/analytics/macro-rows.ts";
import { inProject } from "../../fixtures/command/project.ts";
import type { Row, TradeWorld } from "../../fixtures/trades/trade-world.ts";

const numbers = z.array(z.number());
const acrossSchema = z.object({
  ...{ horizon: z.number(), n: z.number(), ic: z.number(), ic_deviation: z.number(), ic_ratio: z.number() },
  ...{ ic_t: z.number(), ic_positive: z.number(), quantile_spread: z.number() },
  ...{ rank_autocorrelation: z.number(), quantile_return: numbers, quantile_turnover: numbers },
  others: z.object({ quantile_return: numbers, ic_t: z.number() }),
});
const goldenSchema = z.object({
  ...{ seed: z.number(), symbols: z.number(), bars: z.number() },
  across: z.array(acrossSchema),
  through: z.array(z.object({ horizon: z.number(), n: z.number(), ic: z.number(), ic_t: z.number() })),
  distribution: z.record(z.string(), z.number()),
});
const golden = goldenSchema.parse(
  JSON.parse(readFileSync(inProject("test", "fixtures", "golden", "factors.json"), "utf8")),
);

const minute = 60_000_000_000n;
const start = BigInt(Date.UTC(2022, 0, 3)) * 1_000_000n;

/** The series of the script that made the golden values, by the same formula of integers. */
function seeded(): { readonly bars: Row[]; readonly factors: Row[] } {
  let state = BigInt(golden.seed);
  const draw = (below: bigint) => {
    state = (state * 1_103_515_245n + 12_345n) % 2n ** 31n;
    return (state / 256n) % below;
  };
  const [bars, factors]: [Row[], Row[]] = [[], []];
  for (let symbol = 0; symbol < golden.symbols; symbol += 1) {
    let price = 1_000_000n * BigInt(symbol + 1);
    for (let bar = 0; bar < golden.bars; bar += 1) {
      const head = { ts_event: start + BigInt(bar + 1) * minute, symbol: `S${symbol}`, venue: "V" };
      bars.push({ ...head, interval_ns: minute, close: price });
      const drift = draw(2_001n) - 1_000n;
      factors.push({
        ...head,
        ...{ portfolio: "P", factor: "f", value: Number(40n * drift + draw(100_003n)) / 1_000 },
      });
      price = (price * (1_000_000n + drift)) / 1_000_000n;
    }
  }
  return { bars, factors };
}

let world: TradeWorld;
beforeAll(async () => {
  world = await macroWorld(seeded());
});
afterAll(() => world[Symbol.asyncDispose]());

const apart = (got: unknown, expected: number) => Math.abs(Number(got) - expected) / Math.abs(expected);
const near = (got: unknown, expected: number) => expect(apart(got, expected)).toBeLessThan(1e-9);

describe.each(golden.across)("across symbols, over $horizon bars,", (expected) => {
  const options = `horizons := [${expected.horizon}]`;

  test("the coefficient and its error are those of alphalens and statsmodels", async () => {
    const rows = await macroRows(world, "factor_ic", options);
    const metrics = ["ic", "ic_deviation", "ic_ratio", "ic_t", "ic_positive"] as const;
    expect(rows.map(({ metric }) => metric).sort()).toEqual([...metrics].sort());
    for (const metric of metrics) {
      const row = rows.find((one) => one.metric === metric)!;
      expect(row).toMatchObject({ symbol: null, reason: null, n: expected.n });
      near(row.value, expected[metric]);
    }
  });

  test("returns and turnover of quantiles are those of alphalens", async () => {
    const rows = await macroRows(world, "factor_quantiles", options);
    const valuesOf = (metric: string) =>
      rows.filter((row) => row.metric === metric).map(({ value }) => Number(value));
    near(valuesOf("quantile_spread")[0], expected.quantile_spread);
    near(valuesOf("rank_autocorrelation")[0], expected.rank_autocorrelation);
    for (const metric of ["quantile_return", "quantile_turnover"] as const) {
      const values = valuesOf(metric);
      expect(values).toHaveLength(5);
      for (const [index, value] of values.entries()) near(value, expected[metric][index]!);
    }
  });

  test("are others than what alphalens gives by another convention", async () => {
    const rows = await macroRows(world, "factor_quantiles", options);
    const returns = rows.filter(({ metric }) => metric === "quantile_return");
    for (const [index, { value }] of returns.entries()) {
      expect(apart(value, expected.others.quantile_return[index]!)).toBeGreaterThan(1e-6);
    }
    const [ic] = (await macroRows(world, "factor_ic", options)).filter(({ metric }) => metric === "ic_t");
    // without overlap there is nothing to correct
    if (expected.horizon === 1) near(ic!.value, expected.others.ic_t);
    else expect(apart(ic!.value, expected.others.ic_t)).toBeGreaterThan(1e-6);
  });
});

test.each(golden.through)(
  "through time, over $horizon bars, the coefficient is scipy's",
  async (expected) => {
    const rows = await macroRows(world, "factor_ic", `horizons := [${expected.horizon}], min_symbols := 99`);
    const own = rows.filter(({ symbol }) => symbol === "S0");
    expect(own.map(({ metric }) => metric).sort()).toEqual(["ic", "ic_t"]);
    for (const { metric, value, n } of own) {
      expect(n).toBe(expected.n);
      near(value, expected[metric as "ic" | "ic_t"]);
    }
  },
);

test("the distribution is that of pandas", async () => {
  const rows = await macroRows(world, "factor_coverage");
  const own = new Map(rows.filter(({ symbol }) => symbol === "S0").map((row) => [row.metric, row]));
  for (const [metric, value] of Object.entries(golden.distribution)) near(own.get(metric)!.value, value);
});
