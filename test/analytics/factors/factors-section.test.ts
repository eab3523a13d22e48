import { afterEach, expect, test } from "vitest";
import { factorsSection } from "../../../src/analytics/factors/factors-section.ts";
import { macroWorld } from "../../fixtures/analytics/macro-rows.ts";
import { readSection } from "../../fixtures/analytics/read-section.ts";
import { instrumentsOf, type Row, type TradeWorld } from "../../fixtures/trades/trade-world.ts";

const minute = 60_000_000_000n;
const start = 1_641_038_400_000_000_000n;

let world: TradeWorld;
afterEach(() => world[Symbol.asyncDispose]());

const closes = Array.from({ length: 60 }, (_, bar) => 100 + ((bar * 7_919) % 13));

function rows(symbols: readonly string[], more: Row = {}): { readonly bars: Row[]; readonly factors: Row[] } {
  const head = (symbol: string, bar: number) => ({
    ...{ ts_event: start + BigInt(bar) * minute, symbol, venue: "V" },
  });
  return {
    bars: symbols.flatMap((symbol) =>
      closes.map((close, bar) => ({ ...head(symbol, bar), interval_ns: minute, close, ...more })),
    ),
    factors: symbols.flatMap((symbol, index) =>
      closes.map((close, bar) => ({
        ...{ ...head(symbol, bar), portfolio: "P", factor: "f", value: close * (index + 1) },
      })),
    ),
  };
}

const kinds = (parts: readonly { readonly by: string }[]) => [...new Set(parts.map(({ by }) => by))];

test("of one symbol, coefficients are through time, and quantiles say why there are none", async () => {
  world = await macroWorld(rows(["S0"]));
  const { groups } = await readSection(world, factorsSection);
  expect(groups).toHaveLength(1);
  const { parts } = groups[0]!;
  expect(kinds(parts)).toEqual([
    ...["factor", "distribution", "moments", "factor_symbol", "ic_through_time", "quantiles", "quantile"],
  ]);
  expect(parts.filter(({ by }) => by === "ic_through_time").map(({ key }) => key)).toEqual([
    ...["f 1 bar S0 V", "f 5 bars S0 V", "f 20 bars S0 V"],
  ]);
  expect(parts.find(({ by }) => by === "quantiles")!.figures.spread).toEqual({
    value: null,
    reason: "no time has 5 symbols with both factor and return",
  });
});

test("of five symbols, they are across symbols", async () => {
  world = await macroWorld(rows(["S0", "S1", "S2", "S3", "S4"]));
  const { parts } = (await readSection(world, factorsSection)).groups[0]!;
  expect(kinds(parts)).toContain("ic_across_symbols");
  expect(kinds(parts)).not.toContain("ic_through_time");
  expect(parts.filter(({ by }) => by === "quantile")).toHaveLength(15);
  expect(parts.filter(({ by }) => by === "factor_symbol")).toHaveLength(5);
});

test("a file of instruments says which bars are a symbol's", async () => {
  const { bars, factors } = rows(["S0"]);
  const others = bars.map((row) => ({ ...row, interval_ns: 5n * minute }));
  world = await macroWorld({
    ...{ bars: [...bars, ...others], factors },
    equity: [{ currency: "USD", account: "A", portfolio: "P" }],
  });
  const coverage = async (file = instrumentsOf()) =>
    (await readSection(world, factorsSection, file.entries.length === 0 ? null : file)).groups[0]!.parts.find(
      ({ by }) => by === "factor",
    )!.figures.coverage;
  expect(await coverage()).toMatchObject({
    reason: "several bars of the symbol, and no row says which are meant",
  });
  const file = instrumentsOf({ symbol: "S0", bars: { interval: minute } });
  expect(await coverage(file)).toMatchObject({ value: 1, n: 60 });
});

test("a run without factors has no figures", async () => {
  world = await macroWorld();
  expect(await readSection(world, factorsSection)).toEqual({ groups: [], notes: ["no factors"] });
});
