import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContractKind, Instrument } from "../../../src/analytics/instruments/instrument.ts";
import type { BarColumns } from "../../../src/analytics/trades/bar-columns.ts";
import type { FillColumns } from "../../../src/analytics/trades/fill-columns.ts";
import { groupings, type Trade } from "../../../src/analytics/trades/trade.ts";
import type { Market } from "../../../src/analytics/trades/trade-path.ts";
import { valuationOf } from "../../../src/analytics/trades/valuation.ts";
import { walkTrades } from "../../../src/analytics/trades/walk-trades.ts";
import { trialCount } from "../../fixtures/trials/trials.ts";

interface Fill {
  readonly at: number;
  readonly isBuy: boolean;
  readonly quantity: number;
  readonly price: number;
  readonly order: number;
}

/** Of ten time units, one after another. */
interface Bar {
  readonly low: number;
  readonly high: number;
}

const price = fc.integer({ min: 1, max: 1_000 });
const world = fc.record({
  fills: fc.array(
    fc.record({
      at: fc.integer({ min: 0, max: 120 }),
      isBuy: fc.boolean(),
      quantity: fc.integer({ min: 1, max: 6 }),
      price,
      order: fc.integer({ min: 0, max: 3 }),
    }),
    { minLength: 1, maxLength: 14 },
  ),
  bars: fc.array(
    fc.tuple(price, price).map(([a, b]): Bar => ({ low: Math.min(a, b), high: Math.max(a, b) })),
    { maxLength: 13 },
  ),
});

const barLength = 10;
const scales = { price: 6, quantity: 0, fee: 9, money: 18 };
const exact = (value: number) => BigInt(value) * 1_000_000n;

function columnsOf(fills: readonly Fill[], kind: ContractKind): FillColumns {
  const multiplier = { value: 10n, scale: 0 };
  const instrument: Instrument = {
    ...{ symbol: "A", venues: ["X"], currency: "USD", multiplier, kind, bars: null },
  };
  const zeros = () => new Int32Array(fills.length);
  return {
    ...{ count: fills.length, scales, position: zeros(), venue: zeros(), feeCurrency: zeros() },
    ts: BigInt64Array.from(fills, ({ at }) => BigInt(at)),
    seq: BigUint64Array.from(fills, (_, index) => BigInt(index)),
    price: BigInt64Array.from(fills, (fill) => exact(fill.price)),
    quantity: BigInt64Array.from(fills, ({ quantity }) => BigInt(quantity)),
    fee: new BigInt64Array(fills.length),
    isBuy: Uint8Array.from(fills, ({ isBuy }) => Number(isBuy)),
    order: Int32Array.from(fills, ({ order }) => order),
    positions: [{ account: "main", portfolio: "core", instrument }],
    ...{ venues: ["X"], feeCurrencies: ["USD"], orders: ["0", "1", "2", "3"] },
  };
}

function barsOf(bars: readonly Bar[]): BarColumns | null {
  if (bars.length === 0) return null;
  return {
    count: bars.length,
    close: {
      ts: BigInt64Array.from(bars, (_, index) => BigInt((index + 1) * barLength)),
      price: BigInt64Array.from(bars, ({ high }) => exact(high)),
    },
    within: (from, to) => {
      const own = bars.filter((_, k) => k * barLength >= from && (k + 1) * barLength <= to);
      if (own.length === 0) return null;
      return {
        low: exact(Math.min(...own.map(({ low }) => low))),
        high: exact(Math.max(...own.map(({ high }) => high))),
      };
    },
  };
}

/** One unit bought and sold: the fills that opened it and closed it, which is never where it is open at the end. */
interface Unit {
  readonly entry: number;
  readonly exit: number;
}

function unitsOf(fills: readonly Fill[], trade: Trade, grouping: string): readonly Unit[] {
  const side = (isBuy: boolean) =>
    fills.flatMap((fill, index) => (fill.isBuy === isBuy ? Array<number>(fill.quantity).fill(index) : []));
  const [bought, sold] = [side(true), side(false)];
  const units = Array.from({ length: Math.max(bought.length, sold.length) }, (_, k): Unit => {
    const [a, b] = [bought[k] ?? Infinity, sold[k] ?? Infinity];
    return { entry: Math.min(a, b), exit: Math.max(a, b) };
  });
  return units.filter(({ entry, exit }) => {
    if (grouping === "flat") return entry >= trade.entry && (trade.isOpen || exit <= trade.exit);
    if (trade.isOpen || exit === Infinity) return trade.isOpen && exit === Infinity;
    if (grouping === "match") return entry === trade.entry && exit === trade.exit;
    const [own, last] = [fills[exit]!, fills[trade.exit]!];
    return own.order === last.order && own.isBuy === last.isBuy;
  });
}

/** Every result of a trade, by looking at each of its fills and each bar with every unit by itself. */
function walked(
  fills: readonly Fill[],
  bars: readonly Bar[],
  trade: Trade,
  grouping: string,
  market: Market,
) {
  const units = unitsOf(fills, trade, grouping);
  const sign = trade.isLong ? 1 : -1;
  const own = [...new Set(units.flatMap(({ entry, exit }) => [entry, exit]))]
    .filter((fill) => fill !== Infinity)
    .sort((a, b) => a - b);
  const isLinear = market.value(0, 1n, exact(1)) > 0n;
  const ofKind = (at: number) => (isLinear ? at : 1 / at);
  const profits: bigint[] = [0n];
  const ofUnits: number[] = [0];
  /** With the trade's fills up to one of them done. */
  const look = (done: number, at: number) => {
    let profit = 0n;
    const worth = (of: number) => market.value(0, BigInt(sign), exact(of));
    for (const { entry, exit } of units) {
      if (entry <= done) profit += worth(exit <= done ? fills[exit]!.price : at) - worth(fills[entry]!.price);
    }
    profits.push(profit);
    let [open, average] = [0, 0];
    for (const fill of own.filter((each) => each <= done)) {
      const opened = units.filter(({ entry }) => entry === fill).length;
      if (opened > 0) average = (average * open + ofKind(fills[fill]!.price) * opened) / (open + opened);
      open += opened - units.filter(({ exit }) => exit === fill).length;
    }
    if (open > 0) ofUnits.push(sign * (at - ofKind(average)) * 1e6);
  };
  let isFromBars = false;
  for (const [index, fill] of own.entries()) {
    const { at, price: paid } = fills[fill]!;
    look(fill, paid);
    if (index > 0) look(own[index - 1]!, paid);
    const isLast = index === own.length - 1;
    const until = isLast ? (trade.isOpen ? Number(trade.to) : at) : fills[own[index + 1]!]!.at;
    const isHeld = units.some(({ entry, exit }) => entry <= fill && exit > fill);
    for (const [k, { low, high }] of bars.entries()) {
      if (!isHeld || k * barLength < at || (k + 1) * barLength > until) continue;
      isFromBars = true;
      for (const seen of [low, high]) look(fill, seen);
    }
  }
  if (trade.mark !== null) look(own.at(-1)!, Number(trade.mark.price) / 1e6);
  const least = (values: readonly bigint[]) => values.reduce((a, b) => (b < a ? b : a));
  return {
    maePnl: least(profits),
    mfePnl: -least(profits.map((profit) => -profit)),
    mae: Math.min(...ofUnits),
    mfe: Math.max(...ofUnits),
    source: isFromBars ? "bars" : "fills",
  };
}

function apart(a: bigint, b: bigint): number {
  return Math.abs(Number(a - b));
}

describe.each(["linear", "inverse"] as const)("excursions of %s trades", (kind) => {
  // a path that skips a bar, takes one that a fill falls in, or forgets what was realised
  test.each(groupings)("are those of a walk over every bar and every unit, by %s", (grouping) => {
    fc.assert(
      fc.property(world, ({ fills: drawn, bars }) => {
        const made = [...drawn].sort((a, b) => a.at - b.at);
        const fills = columnsOf(made, kind);
        const columns = barsOf(bars);
        const value = valuationOf(fills.positions[0]!.instrument, scales);
        const market: Market = { barsOf: () => columns, value: (_, quantity, at) => value(quantity, at) };
        walkTrades({
          ...{ fills, grouping, withPaths: true, barsOf: market.barsOf },
          onTrade: (trade) => {
            const told = trade.excursions(market);
            const expected = walked(made, bars, trade, grouping, market);
            // each value of an inverse contract is rounded; those of a linear one are exact
            const rounding = kind === "linear" ? 0 : 200;
            expect(apart(told.maePnl, expected.maePnl)).toBeLessThanOrEqual(rounding);
            expect(apart(told.mfePnl, expected.mfePnl)).toBeLessThanOrEqual(rounding);
            expect(told.source).toBe(expected.source);
            expect(Math.abs(Number(told.mae) - expected.mae)).toBeLessThan(1);
            expect(Math.abs(Number(told.mfe) - expected.mfe)).toBeLessThan(1);
            expect(told.maePnl <= 0n && told.maePnl <= trade.gross).toBe(true);
            expect(told.mfePnl >= 0n && told.mfePnl >= trade.gross).toBe(true);
          },
        });
      }),
      { numRuns: trialCount(1_000) },
    );
  });
});
