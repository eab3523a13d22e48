// @module-tag slow
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunTrades } from "../../../src/analytics/trades/run-trades.ts";
import { type Grouping, groupings, type Trade } from "../../../src/analytics/trades/trade.ts";
import {
  allOf,
  defaultTypes,
  dollars,
  instrumentsOf,
  type Row,
  TradeWorld,
} from "../../fixtures/trades/trade-world.ts";
import { trialCount } from "../../fixtures/trials/trials.ts";

let world: TradeWorld;
beforeAll(async () => {
  world = await TradeWorld.open();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

interface Made {
  readonly isBuy: boolean;
  /** In thousandths. */
  readonly quantity: number;
  /** In tenths. */
  readonly price: number;
  /** In billionths. */
  readonly fee: number;
  readonly symbol: "A" | "B";
  readonly order: number;
}

const made: fc.Arbitrary<Made> = fc.record({
  isBuy: fc.boolean(),
  quantity: fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 1, max: 9 }) },
    { weight: 1, arbitrary: fc.constant(0) },
  ),
  price: fc.integer({ min: 1, max: 1_000 }),
  fee: fc.integer({ min: -50, max: 50 }),
  symbol: fc.constantFrom("A", "B"),
  order: fc.integer({ min: 0, max: 5 }),
});

const run = fc.array(made, { minLength: 1, maxLength: 30 });

function fillRows(fills: readonly Made[]): Row[] {
  return fills.map(({ isBuy, quantity, price, fee, symbol, order }, index) => ({
    seq: index + 1,
    ts_event: BigInt(index) * 1_000n,
    account: "main",
    portfolio: "core",
    venue: index % 2 === 0 ? "X" : "Y",
    symbol,
    trade_id: `T${index}`,
    client_order_id: `${symbol}${order}`,
    side: isBuy ? "BUY" : "SELL",
    price: price / 10,
    quantity: quantity / 1000,
    fee: (fee / 1e9).toFixed(9),
    fee_currency: "USD",
  }));
}

const minute = 60_000_000_000n;

/** Bars of a symbol that close a minute after another, each `[low, high, close]`. */
function barRows(symbol: string, bars: readonly (readonly [number, number, number])[], venue = "X"): Row[] {
  return bars.map(([low, high, close], index) => ({
    seq: index + 1,
    ts_open: BigInt(index) * minute,
    ts_event: BigInt(index + 1) * minute,
    venue,
    symbol,
    interval_ns: minute,
    open: close,
    low,
    high,
    close,
  }));
}

async function worldOf(fills: readonly Row[], bars: readonly Row[] = [], equity = dollars): Promise<void> {
  await world.fill("fills", fills);
  await world.fill("bars", bars);
  await world.fill("equity", equity);
}

/** What is to be seen of a trade, with exact values as integers. */
function seen(trade: Trade, run: RunTrades) {
  const { position, isLong, isOpen, quantity, gross, fees, net, from, to, entryPrice, exitPrice } = trade;
  const excursions = trade.excursions(run);
  return {
    position,
    isLong,
    isOpen,
    quantity,
    gross,
    fees,
    net,
    from,
    to,
    entryPrice,
    exitPrice,
    ...excursions,
  };
}

function tradesOf(run: RunTrades, grouping: Grouping) {
  const trades: ReturnType<typeof seen>[] = [];
  const ends = run.walk(grouping, { withPaths: true, onTrade: (trade) => trades.push(seen(trade, run)) });
  return { trades, ends };
}

const sum = (values: Iterable<bigint>) => [...values].reduce((total, value) => total + value, 0n);

describe("whatever is traded", () => {
  test("the k-th unit bought is matched with the k-th unit sold", async () => {
    await fc.assert(
      fc.asyncProperty(run, async (fills) => {
        await worldOf(fillRows(fills));
        const trades = await world.read();
        const matched = new Map<string, bigint>();
        trades.walk("match", {
          onMatch: ({ entry, exit, quantity }) => {
            expect(entry).toBeLessThan(exit);
            const key = fills[entry]!.isBuy ? `${entry} ${exit}` : `${exit} ${entry}`;
            matched.set(key, (matched.get(key) ?? 0n) + quantity / 1_000_000n);
          },
        });
        // units of a thousandth, one by one
        const expected = new Map<string, bigint>();
        for (const symbol of ["A", "B"]) {
          const units = (isBuy: boolean) =>
            fills.flatMap((fill, index) =>
              fill.symbol === symbol && fill.isBuy === isBuy ? Array<number>(fill.quantity).fill(index) : [],
            );
          const [bought, sold] = [units(true), units(false)];
          for (let k = 0; k < Math.min(bought.length, sold.length); k++) {
            const key = `${bought[k]} ${sold[k]}`;
            expected.set(key, (expected.get(key) ?? 0n) + 1n);
          }
        }
        expect(matched).toEqual(expected);
      }),
      { numRuns: trialCount(20) },
    );
  });

  test.each(["linear", "inverse"] as const)(
    "the profit of all trades is that of the fills, to the last digit, and so are their fees: %s",
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(run, async (fills) => {
          await worldOf(fillRows(fills), [...barRows("A", [[1, 99, 50.5]]), ...barRows("B", [[2, 90, 7.3]])]);
          const trades = await world.read({
            instruments: instrumentsOf({ kind, multiplier: "12.5", currency: "USD" }),
          });
          const unit = kind === "linear" ? null : 10n ** 18n;
          for (const grouping of groupings) {
            const { trades: told, ends } = tradesOf(trades, grouping);
            const net = sum(told.map((trade) => trade.net!));
            const loose = sum(ends.map(({ looseFees }) => looseFees));
            const money = BigInt(trades.fills.scales.money);
            const fee = (value: bigint) => value * 10n ** (money - 9n);
            expect(net - fee(loose)).toBe(sum(ends.map(({ flow, value, fees }) => flow + value - fee(fees))));
            expect(sum(told.map(({ fees }) => fees)) + loose).toBe(
              sum(fills.map((fill) => BigInt(fill.fee))),
            );
            if (unit !== null) continue;
            // Σ ∓ price × quantity × multiplier, and the position at the last close
            const flow = sum(
              fills.map(({ isBuy, price, quantity }) => BigInt((isBuy ? -1 : 1) * price * quantity) * 125n),
            );
            const value = sum(
              (["A", "B"] as const).map((symbol) => {
                const own = fills.filter((fill) => fill.symbol === symbol);
                const open = own.reduce((total, fill) => total + (fill.isBuy ? 1 : -1) * fill.quantity, 0);
                return BigInt(open * (symbol === "A" ? 505 : 73)) * 125n;
              }),
            );
            const scale = 10n ** (money - 5n);
            expect(net - fee(loose)).toBe(
              (flow + value) * scale - fee(sum(fills.map((fill) => BigInt(fill.fee)))),
            );
          }
        }),
        { numRuns: trialCount(20) },
      );
    },
  );

  test("what is matched and what is open is what was filled, on either side", async () => {
    await fc.assert(
      fc.asyncProperty(run, async (fills) => {
        await worldOf(fillRows(fills));
        const trades = await world.read();
        const matched = new Map<number, bigint>();
        const ends = trades.walk("flat", {
          onMatch: ({ entry, quantity }) => {
            const position = trades.fills.position[entry]!;
            matched.set(position, (matched.get(position) ?? 0n) + quantity);
          },
        });
        for (const { position, quantity } of ends) {
          const { symbol } = trades.fills.positions[position]!.instrument;
          const filled = (isBuy: boolean) =>
            sum(
              fills
                .filter((fill) => fill.symbol === symbol && fill.isBuy === isBuy)
                .map((fill) => BigInt(fill.quantity) * 1_000_000n),
            );
          const both = matched.get(position) ?? 0n;
          expect(both + (quantity > 0n ? quantity : 0n)).toBe(filled(true));
          expect(both - (quantity < 0n ? quantity : 0n)).toBe(filled(false));
        }
      }),
      { numRuns: trialCount(20) },
    );
  });

  test("a fill in two parts changes no trade from flat to flat", async () => {
    await fc.assert(
      fc.asyncProperty(
        run,
        fc.nat(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (fills, which, share) => {
          // fees in proportion to quantity, as rates make them
          const priced = fills.map((fill) => ({ ...fill, fee: fill.quantity * 3 }));
          const rows = fillRows(priced);
          const index = which % rows.length;
          const whole = priced[index]!.quantity;
          const first = Math.floor(whole * share);
          const part = (quantity: number) => ({
            ...rows[index]!,
            quantity: quantity / 1000,
            fee: ((quantity * 3) / 1e9).toFixed(9),
          });
          const split = [
            ...rows.slice(0, index),
            part(first),
            part(whole - first),
            ...rows.slice(index + 1),
          ].map((row, seq) => ({ ...row, seq: seq + 1 }));
          await worldOf(rows);
          const before = tradesOf(await world.read(), "flat").trades;
          await worldOf(split);
          expect(tradesOf(await world.read(), "flat").trades).toEqual(before);
        },
      ),
      { numRuns: trialCount(20) },
    );
  });

  test("an archive that was widened to DECIMAL(38,18) tells the same, without overflow", async () => {
    await fc.assert(
      fc.asyncProperty(run, async (fills) => {
        const told = async () => {
          // fees in proportion: their parts need no more decimals
          const rows = fillRows(fills.map((fill) => ({ ...fill, fee: fill.quantity * 3 })));
          await worldOf(rows, barRows("A", [[1, 99, 50.5]]));
          const trades = await world.read();
          const { scales } = trades.fills;
          const exact = (value: bigint | null, scale: number) =>
            value === null ? null : value * 10n ** BigInt(40 - scale);
          return tradesOf(trades, "flat").trades.map((trade) => ({
            ...trade,
            quantity: exact(trade.quantity, scales.quantity),
            fees: exact(trade.fees, scales.fee),
            gross: exact(trade.gross, scales.money),
            net: exact(trade.net, scales.money),
            maePnl: exact(trade.maePnl, scales.money),
            mfePnl: exact(trade.mfePnl, scales.money),
            // averages are rounded to the decimals of prices
            entryPrice: undefined,
            exitPrice: undefined,
            mae: undefined,
            mfe: undefined,
          }));
        };
        const narrow = await told();
        world.types = allOf("DECIMAL(38,18)");
        try {
          expect(await told()).toEqual(narrow);
        } finally {
          world.types = defaultTypes;
        }
      }),
      { numRuns: trialCount(20) },
    );
  });
});

const fill = (
  index: number,
  side: "BUY" | "SELL",
  quantity: number | string,
  price: number | string,
  more: Row = {},
): Row => ({
  seq: index,
  ts_event: BigInt(index) * minute,
  account: "main",
  portfolio: "core",
  venue: "X",
  symbol: "A",
  trade_id: `T${index}`,
  client_order_id: `O${index}`,
  side,
  quantity,
  price,
  fee: 0,
  fee_currency: "USD",
  ...more,
});

const nano = 1_000_000_000n;

describe("runs with little in them", () => {
  test("without fills there are no trades and no positions", async () => {
    await worldOf([], barRows("A", [[1, 2, 1]]));
    const trades = await world.read();
    for (const grouping of groupings) expect(tradesOf(trades, grouping)).toEqual({ trades: [], ends: [] });
  });

  test("one fill is a trade that is open, marked at the last close", async () => {
    await worldOf(
      [fill(1, "SELL", 2, 10, { fee: "0.5" })],
      barRows("A", [
        [9, 11, 10],
        [8, 12, 11],
        [6, 9, 7],
      ]),
    );
    const trades = await world.read();
    for (const grouping of groupings) {
      const { trades: told, ends } = tradesOf(trades, grouping);
      expect(told).toEqual([
        {
          position: 0,
          isLong: false,
          isOpen: true,
          quantity: 2n * nano,
          gross: 6n * nano * nano,
          fees: nano / 2n,
          net: (55n * nano * nano) / 10n,
          from: minute,
          to: 3n * minute,
          entryPrice: 10n * nano,
          exitPrice: null,
          // the two bars behind the fill, not the one that it closes
          mae: -2n * nano,
          mfe: 4n * nano,
          maePnl: -4n * nano * nano,
          mfePnl: 8n * nano * nano,
          source: "bars",
        },
      ]);
      expect(ends[0]).toMatchObject({ quantity: -2n * nano, mark: { price: 7n * nano, source: "bar" } });
    }
  });

  test("without bars a position is marked at its last fill, and excursions come from the fills", async () => {
    await worldOf([fill(1, "BUY", 1, 10), fill(2, "BUY", 1, 16)]);
    const { trades, ends } = tradesOf(await world.read(), "flat");
    expect(trades[0]).toMatchObject({
      gross: 6n * nano * nano,
      // at 16 the unit that was open, at 10, was 6 above; the average of both is 3 below
      mae: 0n,
      mfe: 6n * nano,
      maePnl: 0n,
      mfePnl: 6n * nano * nano,
      source: "fills",
    });
    expect(ends[0]!.mark).toEqual({ price: 16n * nano, ts: 2n * minute, source: "fill" });
  });

  test("the bars that entry and exit fall into are left out of the excursions", async () => {
    const bars = barRows("A", [
      [1, 99, 10],
      [9, 12, 10],
      [8, 11, 10],
      [2, 98, 10],
    ]);
    const inside = { ts_event: minute / 2n };
    await worldOf(
      [fill(1, "BUY", 1, 10, inside), fill(2, "SELL", 1, 10, { ts_event: 3n * minute + 1n })],
      bars,
    );
    const { trades } = tradesOf(await world.read(), "flat");
    expect(trades[0]).toMatchObject({ mae: -2n * nano, mfe: 2n * nano, source: "bars" });
  });

  test("a fill that flips the position ends one trade and begins the next, its fee by quantity", async () => {
    await worldOf([
      fill(1, "BUY", 1, 10),
      fill(2, "SELL", 3, 11, { fee: "0.000000010" }),
      fill(3, "BUY", 2, 9),
    ]);
    const { trades } = tradesOf(await world.read(), "flat");
    expect(trades.map(({ isLong, quantity, gross, fees }) => ({ isLong, quantity, gross, fees }))).toEqual([
      { isLong: true, quantity: nano, gross: nano * nano, fees: 3n },
      { isLong: false, quantity: 2n * nano, gross: 4n * nano * nano, fees: 7n },
    ]);
  });

  test("a fill of no quantity moves nothing, and what it cost is no trade's", async () => {
    await worldOf([fill(1, "BUY", 1, 10), fill(2, "SELL", 0, 99, { fee: 2 }), fill(3, "SELL", 1, 10)]);
    const { trades, ends } = tradesOf(await world.read(), "flat");
    expect(trades).toHaveLength(1);
    expect(trades[0]).toMatchObject({ fees: 0n, mfe: 0n });
    expect(ends[0]).toMatchObject({ fees: 2n * nano, looseFees: 2n * nano, fills: 3 });
  });

  test("fills of one instant count in the order of their keys, or of their trade ids, T9 before T10", async () => {
    const at = { ts_event: minute };
    await worldOf([
      fill(1, "SELL", 1, 12, { ...at, trade_id: "T10" }),
      fill(2, "BUY", 1, 10, { ...at, trade_id: "T9" }),
    ]);
    const sides = async (order: "key" | "trade_id") =>
      tradesOf(await world.read({ order }), "flat").trades.map(({ isLong }) => isLong);
    expect(await sides("key")).toEqual([false]);
    expect(await sides("trade_id")).toEqual([true]);
  });

  test("a position of average cost is what the simulator books: what is closed is truncated toward zero", async () => {
    await worldOf([
      fill(1, "BUY", "0.001", "10.000001"),
      fill(2, "BUY", "0.002", "11"),
      fill(3, "SELL", "0.001", "12"),
    ]);
    const { ends } = tradesOf(await world.read(), "flat");
    // 0.032000001 bought; a third of it, 0.010666667, is closed
    expect(ends[0]!.averageCost).toBe(21_333_334n * nano);
    expect(ends[0]!.fifoCost).toBe(22_000_000n * nano);
  });

  // caught by: prices of an inverse contract averaged by quantity, which is money
  test("average prices of an inverse contract are harmonic means", async () => {
    await worldOf([
      fill(1, "BUY", 100, 30_000),
      fill(2, "BUY", 100, "49590.25"),
      fill(3, "SELL", 150, 40_000),
      fill(4, "SELL", 50, 60_000),
    ]);
    const instruments = instrumentsOf({ kind: "inverse", currency: "USD" });
    const [only] = tradesOf(await world.read({ instruments }), "flat").trades;
    const at = (price: bigint | null) => Number(price) / 1e9;
    expect(at(only!.entryPrice)).toBeCloseTo(200 / (100 / 30_000 + 100 / 49_590.25), 6);
    expect(at(only!.exitPrice)).toBeCloseTo(200 / (150 / 40_000 + 50 / 60_000), 6);
    // one price, to the last digit, however small the quantity
    await worldOf([fill(1, "BUY", "0.000000001", "39199.999999999"), fill(2, "SELL", 1, 7)]);
    expect(tradesOf(await world.read({ instruments }), "flat").trades[0]!.entryPrice).toBe(
      39_199_999_999_999n,
    );
  });

  test("fees in another currency than the profit leave it without a net", async () => {
    await worldOf([fill(1, "BUY", 1, 10, { fee: 1, fee_currency: "BNB" }), fill(2, "SELL", 1, 11)]);
    expect(tradesOf(await world.read(), "flat").trades[0]).toMatchObject({ net: null, fees: nano });
  });

  test("venues of a symbol are one position, accounts and portfolios are several", async () => {
    await worldOf([
      fill(1, "BUY", 1, 10, { venue: "X" }),
      fill(2, "SELL", 1, 11, { venue: "DARK" }),
      fill(3, "BUY", 1, 10, { account: "other" }),
      fill(4, "SELL", 1, 10, { portfolio: "other" }),
    ]);
    const { trades } = tradesOf(await world.read(), "flat");
    expect(trades.map(({ isOpen, isLong }) => ({ isOpen, isLong }))).toEqual([
      { isOpen: false, isLong: true },
      { isOpen: true, isLong: true },
      { isOpen: true, isLong: false },
    ]);
  });

  test("a portfolio that held something before its first fill is told", async () => {
    const point = (ts: bigint, value: number, portfolio: string): Row => ({
      ...dollars[0]!,
      portfolio,
      ts_event: ts,
      position_value: value,
    });
    const equity = [
      point(0n, 5, "core"),
      point(9n * minute, 7, "core"),
      point(minute, 3, "late"),
      point(0n, 0, "flat"),
    ];
    await worldOf(
      [
        fill(1, "SELL", 1, 10),
        fill(1, "BUY", 1, 10, { portfolio: "late" }),
        fill(2, "BUY", 1, 9, { portfolio: "flat" }),
      ],
      [],
      equity,
    );
    expect((await world.read()).heldBefore).toEqual([
      { account: "main", portfolio: "core", currency: "USD", positionValue: "5.000000000" },
    ]);
  });

  test("a row that is no fill is named", async () => {
    await worldOf([fill(1, "BUY", 1, 10), fill(2, "SELL", -1, 10)]);
    await expect(world.read()).rejects.toMatchObject({
      code: "malformed_row",
      message: "the fill with seq 2 has no valid quantity",
    });
    await worldOf([fill(1, "BUY", 1, 0)]);
    const trades = await world.read({ instruments: instrumentsOf({ kind: "inverse", currency: "BTC" }) });
    expect(() => trades.walk("flat")).toThrowError(/inverse contract/);
  });
});
