import { afterAll, beforeAll, expect, test } from "vitest";
import { tradeFigures } from "../../../src/analytics/trades/trade-figures.ts";
import { dollars, type Row, TradeWorld } from "../../fixtures/trades/trade-world.ts";

let world: TradeWorld;
beforeAll(async () => {
  world = await TradeWorld.open();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const hour = 3_600_000_000_000n;

function fill(index: number, side: string, quantity: number, price: number, more: Row = {}): Row {
  const own = { account: "main", portfolio: "core", venue: "X", symbol: "A", fee: 1, fee_currency: "USD" };
  return { ...own, seq: index, ts_event: BigInt(index) * hour, side, quantity, price, ...more };
}

async function figuresOf(fills: readonly Row[], to = 10n * hour) {
  await world.fill("fills", fills);
  await world.fill("bars", []);
  await world.fill("equity", dollars);
  return tradeFigures(await world.read(), "flat", 0n, to);
}

/** Values alone; in place of null its reason. */
function values(figures: Readonly<Record<string, { value: number | string | null; reason?: string }>>) {
  return Object.fromEntries(
    Object.entries(figures).map(([name, { value, reason }]) => [name, value ?? reason]),
  );
}

test("the figures of two winners, a loser, a trade of nothing and an open one", async () => {
  const [only, ...more] = await figuresOf([
    fill(1, "BUY", 1, 10),
    fill(2, "SELL", 1, 22),
    fill(3, "SELL", 1, 20),
    fill(4, "BUY", 1, 12, { venue: "Y" }),
    fill(5, "BUY", 2, 10),
    fill(6, "SELL", 2, 7),
    fill(7, "BUY", 1, 10),
    fill(8, "SELL", 1, 12),
    fill(9, "BUY", 3, 10),
  ]);
  expect(more).toEqual([]);
  expect(only).toMatchObject({ account: "main", portfolio: "core", currency: "USD", grouping: "flat" });
  expect(values(only!.figures)).toEqual({
    trades: 4,
    open_trades: 1,
    closed_net_pnl: "8",
    hit_rate: 0.5,
    profit_factor: 2,
    payoff: 1,
    expectancy: 2,
    holding_time: 3600,
    net_pnl: "7",
    fees: "9",
    turnover: "150",
    time_in_market: 0.5,
    exposure_gross: (10 + 20 + 20 + 10 + 30) / 10,
    exposure_net: (10 - 20 + 20 + 10 + 30) / 10,
  });
  const by = Object.fromEntries(
    Object.entries(only!.by).map(([name, parts]) => [
      name,
      parts.map(({ key, trades, net_pnl }) => [key, trades.value, net_pnl.value]),
    ]),
  );
  expect(by).toEqual({
    symbol: [["A", 4, "8"]],
    venue: [
      ["X", 3, "2"],
      ["several", 1, "6"],
    ],
    side: [
      ["LONG", 3, "2"],
      ["SHORT", 1, "6"],
    ],
    hour: [
      ["02", 1, "10"],
      ["04", 1, "6"],
      ["06", 1, "-8"],
      ["08", 1, "0"],
    ],
    weekday: [["Thursday", 4, "8"]],
  });
});

test("what there is none of is null with its reason", async () => {
  expect(await figuresOf([])).toEqual([]);
  const [winning] = await figuresOf([fill(1, "BUY", 1, 10), fill(2, "SELL", 1, 20)]);
  expect(values(winning!.figures)).toMatchObject({
    hit_rate: 1,
    profit_factor: "no losing trade",
    payoff: "no losing trade",
  });
  const [losing] = await figuresOf([fill(1, "BUY", 1, 20), fill(2, "SELL", 1, 10)]);
  expect(values(losing!.figures)).toMatchObject({
    hit_rate: 0,
    profit_factor: 0,
    payoff: "no winning trade",
  });
  const [open] = await figuresOf([fill(1, "BUY", 1, 10)], 0n);
  expect(values(open!.figures)).toMatchObject({
    trades: 0,
    open_trades: 1,
    hit_rate: "no closed trade",
    holding_time: "no closed trade",
    time_in_market: "no time between the first and the last timestamp",
    net_pnl: "-1",
  });
  const foreign = { fee_currency: "BNB" };
  const [other] = await figuresOf([fill(1, "BUY", 1, 10, foreign), fill(2, "SELL", 1, 20, foreign)]);
  expect(values(other!.figures)).toMatchObject({
    net_pnl: "fees are in another currency than the profit",
    hit_rate: "fees are in another currency than the profit",
    fees: "2",
  });
});

test("portfolios and accounts are kept apart", async () => {
  const figures = await figuresOf([
    fill(1, "BUY", 1, 10),
    fill(2, "SELL", 1, 10, { portfolio: "other" }),
    fill(3, "SELL", 1, 10, { account: "other" }),
  ]);
  expect(figures.map(({ account, portfolio }) => [account, portfolio])).toEqual([
    ["main", "core"],
    ["main", "other"],
    ["other", "core"],
  ]);
});
