// @module-tag slow
import { afterEach, describe, expect, test } from "vitest";
import { macroRows, macroWorld } from "../../fixtures/analytics/macro-rows.ts";
import { allOf, dollars, type Row, type TradeWorld } from "../../fixtures/trades/trade-world.ts";

const second = 1_000_000_000n;
const start = 1_641_038_400_000_000_000n;

let world: TradeWorld;
afterEach(() => world[Symbol.asyncDispose]());

const market = { account: "main", portfolio: "core", symbol: "BTC", venue: "V" };

/** Rows of an order: kind and second of each, with what the last ones say of it. */
function order(id: string, steps: readonly (readonly [string, number])[], more: Row = {}): Row[] {
  return steps.map(([kind, at]) => ({
    ...{ ...market, client_order_id: id, kind, status: kind, ts_event: start + BigInt(at) * second },
    ...{ side: "BUY", type: "MARKET", quantity: 2, filled_quantity: kind === "FILLED" ? 2 : 0 },
    ...{ arrival_price: 100, ...more },
  }));
}

function fill(id: string, at: number, more: Row = {}): Row {
  return {
    ...{ ...market, client_order_id: id, trade_id: `T${at}`, ts_event: start + BigInt(at) * second },
    ...{ side: "BUY", price: 100, quantity: 2, fee: "0.1", fee_currency: "USD", liquidity: "TAKER", ...more },
  };
}

async function figures(options = ""): Promise<Record<string, unknown>[]> {
  const rows = await macroRows(world, "execution", options);
  const wrong = rows.filter(({ value, reason }) =>
    value === null
      ? reason === null || reason === "not a finite number"
      : reason !== null || !Number.isFinite(value) || Object.is(value, -0),
  );
  expect(wrong).toEqual([]);
  return rows;
}

async function figure(metric: string, by: Row = {}, options = ""): Promise<Record<string, unknown>> {
  const found = (await figures(options)).filter(
    (row) =>
      row.metric === metric &&
      ["venue", "order_type", "liquidity", "symbol"].every((name) => row[name] === (by[name] ?? null)),
  );
  expect(found).toHaveLength(1);
  return found[0]!;
}

const taker = { order_type: "MARKET", liquidity: "TAKER" };
const whole = [
  ["SUBMITTED", 0],
  ["ACCEPTED", 1],
  ["FILLED", 3],
] as const;

describe("a cost is positive", () => {
  test.each([
    ["BUY", 101, 100],
    ["BUY", 99, -100],
    ["SELL", 101, -100],
    ["SELL", 99, 100],
  ])("%s at %d against 100: %d bp", async (side, price, cost) => {
    world = await macroWorld({
      orders: order("A", whole, { side }),
      fills: [fill("A", 3, { side, price })],
      equity: dollars,
    });
    expect((await figure("slippage_arrival", taker)).value).toBeCloseTo(cost, 9);
  });

  test("and weighted by notional", async () => {
    world = await macroWorld({
      orders: order("A", whole),
      fills: [fill("A", 3, { price: 101, quantity: 1 }), fill("A", 4, { price: 102, quantity: 3 })],
      equity: dollars,
    });
    expect((await figure("slippage_arrival", taker)).value).toBeCloseTo(
      (101 * 100 + 306 * 200) / (101 + 306),
      9,
    );
  });
});

describe("references", () => {
  const bar = (at: number, close: number, more: Row = {}) => ({
    ...{
      symbol: "BTC",
      venue: "V",
      interval_ns: second,
      close,
      ts_event: start + BigInt(at) * second,
      ...more,
    },
  });
  const book = (at: number, bid: number, ask: number, more: Row = {}): Row[] =>
    [
      ["BID", bid],
      ["ASK", ask],
    ].map(([side, price]) => ({
      ...{ symbol: "BTC", venue: "V", level: 0, snapshot_id: at + 100, side: side!, price: price! },
      ...{ ts_event: start + BigInt(at) * second, ...more },
    }));

  test("are a bar that closed before the submission, and a book at that instant or before", async () => {
    world = await macroWorld({
      orders: order(
        "A",
        whole.map(([kind, at]) => [kind, at + 100]),
      ),
      fills: [fill("A", 103, { price: 110 })],
      bars: [bar(98, 99), bar(99, 100), bar(100, 50)],
      order_book: [...book(90, 98, 100), ...book(100, 108, 110), ...book(101, 1, 2)],
      equity: dollars,
    });
    expect((await figure("slippage_bar", taker)).value).toBeCloseTo(1_000, 9);
    expect((await figure("slippage_mid", taker)).value).toBeCloseTo((1 / 109) * 10_000, 9);
    expect((await figure("book_age_max", taker)).value).toBe(0);
  });

  test("leave out books that are older than max_age, and say so", async () => {
    world = await macroWorld({
      orders: order(
        "A",
        whole.map(([kind, at]) => [kind, at + 100]),
      ),
      fills: [fill("A", 103)],
      order_book: book(39, 99, 101),
      equity: dollars,
    });
    expect(await figure("slippage_mid", taker)).toMatchObject({ reason: "no book was recent enough", n: 0 });
    expect(await figure("slippage_mid", taker, "max_age := '61 seconds'")).toMatchObject({ value: 0, n: 1 });
    expect((await figure("book_age_max", taker, "max_age := INTERVAL 2 MINUTE")).value).toBe(61);
  });

  test("take a book with both sides, of the order's venue, else of the only one", async () => {
    const orders = order("A", whole, { venue: "DARK" });
    const fills = [fill("A", 3, { venue: "DARK" })];
    const oneSided = book(0, 50, 60).slice(0, 1);
    world = await macroWorld({
      ...{ orders, fills, equity: dollars },
      order_book: [...book(-1, 99, 101), ...oneSided],
    });
    expect(await figure("slippage_mid", taker)).toMatchObject({ value: 0, n: 1 });
    world = await macroWorld({
      ...{ orders, fills, equity: dollars },
      order_book: [...book(-1, 99, 101), ...book(-1, 99, 101, { venue: "W" })],
    });
    expect(await figure("slippage_mid", taker)).toMatchObject({ reason: "no books" });
    world = await macroWorld({
      ...{ orders, fills, equity: dollars },
      order_book: [...book(-1, 99, 101), ...book(-1, 49, 51, { venue: "DARK" })],
    });
    expect((await figure("slippage_mid", taker)).value).toBeCloseTo(10_000, 9);
  });

  test("are none where there are several bars of a symbol", async () => {
    world = await macroWorld({
      ...{ orders: order("A", whole), fills: [fill("A", 3)], equity: dollars },
      bars: [bar(-1, 100), bar(-1, 100, { interval_ns: 2n * second })],
    });
    expect(await figure("slippage_bar", taker)).toMatchObject({
      reason: "several bars of a symbol, and no row says which are meant",
    });
  });
});

describe("latency to the first fill", () => {
  const limit = { type: "LIMIT", price: 99 };

  test.each([
    ["a limit order that a TAKER filled", limit, "TAKER", 3],
    ["a limit order that rested", limit, "MAKER", null],
    [
      "a limit order beyond its arrival price, at a venue that does not say",
      { type: "LIMIT", price: 101 },
      "",
      3,
    ],
    ["a limit order short of it, at a venue that does not say", limit, "", null],
    ["a stop order", { type: "STOP_MARKET" }, "TAKER", null],
    ["a market order", {}, "", 3],
  ])("of %s", async (_, more, liquidity, expected) => {
    world = await macroWorld({
      orders: order("A", whole, more),
      fills: [fill("A", 3, { liquidity })],
      equity: dollars,
    });
    expect((await figure("fill_latency_p50")).value).toBe(expected);
    expect((await figure("accept_latency_p50")).value).toBe(1);
  });
});

test("an order that was filled in part is in the state that it ended in, and flagged", async () => {
  const partly = { filled_quantity: 1 };
  world = await macroWorld({
    orders: [
      ...order("A", [["SUBMITTED", 0]]),
      ...order("B", [["SUBMITTED", 0]]),
      ...order("B", [["PARTIALLY_FILLED", 1]], partly),
      ...order("C", [["SUBMITTED", 0]]),
      ...order("C", [["CANCELED", 1]], partly),
      ...order("D", whole),
    ],
    equity: dollars,
  });
  const rows = await macroRows(world, "order_funnel");
  expect(rows.map(({ state, orders, partly_filled }) => [state, orders, partly_filled])).toEqual([
    ["accepted", 1, 1],
    ["canceled", 1, 1],
    ["filled", 1, 0],
    ["submitted", 1, 0],
  ]);
  expect(await figure("partly_filled")).toMatchObject({ value: 2, n: 4 });
});

test("rows of one instant are in the order of seq", async () => {
  const rows = order("A", [
    ["SUBMITTED", 0],
    ["FILLED", 0],
  ]);
  world = await macroWorld({ orders: rows.map((row, index) => ({ ...row, seq: 9 - index })) });
  expect((await macroRows(world, "order_funnel"))[0]).toMatchObject({ state: "submitted" });
});

test("rebates stand apart from fees, exactly, in each currency and at each venue", async () => {
  world = await macroWorld({
    fills: [
      fill("A", 1, { fee: "0.100000001" }),
      fill("A", 2, { fee: "-0.030000001" }),
      fill("A", 3, { fee: "0.200000002", fee_currency: "BNB" }),
      fill("A", 4, { fee: "-0.5", venue: "W" }),
    ],
    equity: dollars,
  });
  const result = await world.connection.runAndReadAll(`
    SELECT venue, currency, metric, CAST(amount AS VARCHAR) FROM execution('alpha-1', '2022-01-01-001')
    WHERE metric IN ('fees', 'rebates') ORDER BY ALL`);
  expect(result.getRows()).toEqual([
    ["V", "BNB", "fees", "0.200000002"],
    ["V", "BNB", "rebates", "0.000000000"],
    ["V", "USD", "fees", "0.100000001"],
    ["V", "USD", "rebates", "0.030000001"],
    ["W", "USD", "fees", "0.000000000"],
    ["W", "USD", "rebates", "0.500000000"],
  ]);
});

test("notional of a widened archive does not overflow", async () => {
  world = await macroWorld(
    {
      orders: order("A", whole, { arrival_price: 46_000 }),
      fills: [fill("A", 3, { price: "46000.5", quantity: "1.5" })],
      equity: dollars,
    },
    allOf("DECIMAL(38,18)"),
  );
  expect((await figure("slippage_arrival", taker)).value).toBeCloseTo((0.5 / 46_000) * 10_000, 9);
});

describe("a run without figures says why:", () => {
  test("no rows at all: no figures", async () => {
    world = await macroWorld();
    expect(await figures()).toEqual([]);
    expect(await macroRows(world, "order_funnel")).toEqual([]);
  });

  test("no fills", async () => {
    world = await macroWorld({
      orders: order("A", [
        ["SUBMITTED", 0],
        ["REJECTED", 1],
      ]),
      equity: dollars,
    });
    expect(await figure("fills")).toMatchObject({ reason: "no fills" });
    expect(await figure("maker_share")).toMatchObject({ reason: "no fills" });
    expect(await figure("accept_latency_p50")).toMatchObject({ reason: "no order was accepted" });
    expect(await figure("fill_ratio_orders")).toMatchObject({ value: 0 });
  });

  test("no orders", async () => {
    world = await macroWorld({ fills: [fill("A", 1)], equity: dollars });
    expect(await figure("orders")).toMatchObject({ reason: "no orders" });
    expect(await figure("fills_without_order")).toMatchObject({ value: 1 });
    expect(await figure("slippage_arrival", { liquidity: "TAKER" })).toMatchObject({
      reason: "no row of their orders",
    });
    expect(await figure("taker_share")).toMatchObject({ value: 1 });
  });

  test("no books, no bars, no arrival price", async () => {
    world = await macroWorld({
      orders: order("A", whole).map(({ arrival_price: _, ...row }) => row),
      fills: [fill("A", 3)],
      equity: dollars,
    });
    expect(await figure("slippage_arrival", taker)).toMatchObject({
      reason: "no order has an arrival price",
    });
    expect(await figure("slippage_bar", taker)).toMatchObject({ reason: "no bar closed before" });
    expect(await figure("slippage_mid", taker)).toMatchObject({ reason: "no books" });
    expect(await figure("book_age_mean", taker)).toMatchObject({ reason: "no books" });
  });

  test("several currencies: notional is not added", async () => {
    world = await macroWorld({
      ...{ orders: order("A", whole), fills: [fill("A", 3)] },
      equity: [...dollars, { currency: "EUR", account: "main", portfolio: "core" }],
    });
    expect(await figure("slippage_arrival", taker)).toMatchObject({
      reason: "notional of several currencies is not added, and no row says which a symbol is traded in",
    });
    expect(await figure("accept_latency_p50")).toMatchObject({ value: 1 });
  });

  test("no price, no quantity, no fee", async () => {
    world = await macroWorld({
      orders: order("A", whole, { quantity: 0, arrival_price: 0 }),
      fills: [fill("A", 3, { price: 0, quantity: 0 })].map(({ fee: _, ...row }) => row),
      equity: dollars,
    });
    expect(await figure("fill_ratio_quantity")).toMatchObject({ reason: "no quantity was ordered" });
    expect(await figure("maker_share")).toMatchObject({ reason: "no notional" });
    expect(await figure("fees", { venue: "V" })).toMatchObject({ reason: "no fill has a fee" });
  });
});
