import { afterEach, expect, test } from "vitest";
import { executionSection } from "../../../src/analytics/execution/execution-section.ts";
import { macroWorld } from "../../fixtures/analytics/macro-rows.ts";
import { readSection } from "../../fixtures/analytics/read-section.ts";
import { dollars, instrumentsOf, type Row, type TradeWorld } from "../../fixtures/trades/trade-world.ts";

const second = 1_000_000_000n;
const start = 1_641_038_400_000_000_000n;

let world: TradeWorld;
afterEach(() => world[Symbol.asyncDispose]());

const at = (seconds: number) => start + BigInt(seconds) * second;
const book = { account: "main", portfolio: "core", venue: "V" };

/** A market order filled whole, and its fill. */
function bought(id: string, symbol: string, price: number, quantity: number, more: Row = {}) {
  const head = { ...book, symbol, client_order_id: id, side: "BUY" };
  const steps = [
    ["SUBMITTED", 0],
    ["ACCEPTED", 1],
    ["FILLED", 2],
  ] as const;
  return {
    orders: steps.map(([kind, seconds]) => ({
      ...{ ...head, kind, status: kind, ts_event: at(seconds), type: "MARKET", quantity },
      ...{ filled_quantity: kind === "FILLED" ? quantity : 0, arrival_price: 100 },
    })),
    fills: [
      {
        ...{ ...head, ts_event: at(2), trade_id: id, price, quantity, liquidity: "TAKER" },
        ...{ fee: "0.25", fee_currency: "USD", ...more },
      },
    ],
  };
}

const figuresOf = ({ figures }: { readonly figures: Readonly<Record<string, unknown>> }) => figures;

test("the states of the funnel add up to the orders, each with its share", async () => {
  const one = bought("A", "BTC", 101, 2);
  const rejected = ["SUBMITTED", "REJECTED"].map((kind, seconds) => ({
    ...{ ...one.orders[0], client_order_id: "B", kind, status: kind, ts_event: at(seconds) },
  }));
  world = await macroWorld({ orders: [...one.orders, ...rejected], fills: one.fills, equity: dollars });
  const { groups, notes } = await readSection(world, executionSection);
  expect(notes).toEqual([]);
  expect(groups).toHaveLength(1);
  const { figures, parts } = groups[0]!;
  expect(figures.orders).toMatchObject({ value: 2, unit: "orders", from: "2022-01-01T12:00:00.000000000Z" });
  expect(
    parts
      .filter(({ by }) => by === "state")
      .map(({ key, figures: own }) => [key, own.orders!.value, own.share!.value]),
  ).toEqual([
    ["filled", 1, 0.5],
    ["rejected", 1, 0.5],
  ]);
  const [slippage] = parts.filter(({ by }) => by === "slippage");
  expect(slippage).toMatchObject({
    key: "MARKET TAKER",
    figures: {
      arrival: { value: expect.closeTo(100, 9), unit: "bp", n: 1 },
      mid: { value: null, reason: "no books" },
    },
  });
});

test("fees are exact decimals, each currency in a group of its own", async () => {
  const one = bought("A", "BTC", 101, 2, { fee: "-0.100000001", fee_currency: "BNB" });
  const two = bought("B", "BTC", 101, 2, { fee: "12.5" });
  world = await macroWorld({
    orders: [...one.orders, ...two.orders],
    fills: [...one.fills, ...two.fills],
    equity: dollars,
  });
  const { groups } = await readSection(world, executionSection);
  expect(
    groups.map(({ currency, parts }) => [
      currency,
      ...parts
        .filter(({ by }) => by === "venue")
        .map(({ key, figures: { fees, rebates } }) => [key, fees!.value, rebates!.value]),
    ]),
  ).toEqual([
    ["BNB", ["V", "0", "0.100000001"]],
    ["USD", ["V", "12.5", "0"]],
  ]);
});

test("a file of instruments says currencies and multipliers, and notional is by these", async () => {
  const one = bought("A", "BTC", 101, 2);
  const two = bought("B", "INV", 102, 3);
  const three = bought("C", "EUR", 103, 1, { liquidity: "MAKER" });
  const euros = [...dollars, { ...dollars[0], currency: "EUR" }];
  world = await macroWorld({
    orders: [one, two, three].flatMap(({ orders }) => orders),
    fills: [one, two, three].flatMap(({ fills }) => fills),
    equity: euros,
  });
  const file = instrumentsOf(
    { symbol: "BTC", currency: "USD", multiplier: "10" },
    { symbol: "INV", currency: "USD", kind: "inverse", multiplier: "100000" },
    { symbol: "EUR", currency: "EUR" },
  );
  const { groups } = await readSection(world, executionSection, file);
  expect(groups.map(({ currency }) => currency)).toEqual(["EUR", "USD"]);
  const [eur, usd] = groups.map(figuresOf);
  expect(eur).toMatchObject({ maker_share: { value: 1 }, orders: { value: 1 } });
  expect(usd).toMatchObject({ taker_share: { value: 1 }, orders: { value: 2 } });
  const [linear, inverse] = [101 * 2 * 10, (3 * 100_000) / 102];
  const slippage = groups[1]!.parts.find(({ by }) => by === "slippage")!;
  expect(slippage.figures.arrival!.value).toBeCloseTo((100 * linear + 200 * inverse) / (linear + inverse), 9);
});

test("without a file several currencies are one group, whose money is not added", async () => {
  const one = bought("A", "BTC", 101, 2);
  world = await macroWorld({ ...one, equity: [...dollars, { ...dollars[0], currency: "EUR" }] });
  const { groups } = await readSection(world, executionSection);
  const reason = "notional of several currencies is not added, and no row says which a symbol is traded in";
  expect(figuresOf(groups.find(({ currency }) => currency === "")!)).toMatchObject({
    taker_share: { value: null, reason },
    orders: { value: 1 },
  });
});

test("a run without orders and fills has no figures", async () => {
  world = await macroWorld({ equity: dollars });
  expect(await readSection(world, executionSection)).toEqual({
    groups: [],
    notes: ["no orders and no fills"],
  });
});
