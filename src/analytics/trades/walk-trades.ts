import { AverageCostPosition } from "./average-cost.ts";
import type { BarColumns } from "./bar-columns.ts";
import { FifoPosition, type Match } from "./fifo-position.ts";
import type { FillColumns } from "./fill-columns.ts";
import { type Grouping, type Mark, none, sameCurrency, Trade } from "./trade.ts";
import { type Valuation, valuationOf } from "./valuation.ts";

/** A position as the last fill left it. */
export interface FinalPosition {
  /** Index of its key. */
  readonly position: number;
  readonly fills: number;
  /** Fills by index. */
  readonly first: number;
  readonly last: number;
  /** Signed: above zero when long. */
  readonly quantity: bigint;
  /** The cost of the open quantity, in money with the sign of its value: by average, and by first in, first out. */
  readonly averageCost: bigint;
  readonly fifoCost: bigint;
  /** The value of the open quantity at the mark, in money. */
  readonly value: bigint;
  readonly mark: Mark;
  /** The cash flow of all fills without fees, in money: profit is `flow` + `value`. */
  readonly flow: bigint;
  /** Of all of its fills. */
  readonly fees: bigint;
  /** Index of their currency, `none` or `several`. */
  readonly feeCurrency: number;
  /** The part of `fees` that fills of no quantity were charged, which belongs to no trade. */
  readonly looseFees: bigint;
}

export interface Walk {
  readonly fills: FillColumns;
  /** The bars of a position's instrument; null if there are none. */
  barsOf(position: number): BarColumns | null;
  readonly grouping: Grouping;
  /** Whether trades keep what their excursions need. Default: false. */
  readonly withPaths?: boolean;
  /** Called for each trade when it is over, in order of closing, and then for open ones at the end. */
  onTrade?(trade: Trade): void;
  /** Called for each match. */
  onMatch?(match: Match): void;
}

/**
 * The single pass over a run's fills: every position by first in, first out and by average cost, in exact integers.
 * Returns the final positions, in the order of their keys. Holds the open lots and unfinished trades.
 */
export function walkTrades(walk: Walk): readonly FinalPosition[] {
  const { fills } = walk;
  const lastOfOrder = walk.grouping === "order" ? lastFills(fills) : null;
  const states = fills.positions.map(
    ({ instrument }, position) =>
      new PositionState(walk, position, valuationOf(instrument, fills.scales), instrument.kind === "linear"),
  );
  for (let fill = 0; fill < fills.count; fill++) {
    const state = states[fills.position[fill]!]!;
    state.add(fill);
    if (lastOfOrder?.[fills.order![fill]!] === fill) state.endOrder(fills.order![fill]!);
  }
  return states.map((state) => state.end());
}

/** The last fill of each order. */
function lastFills({ count, order }: FillColumns): readonly number[] {
  if (order === null) throw new TypeError("trades by order need fills with an order id");
  const last: number[] = [];
  for (let fill = 0; fill < count; fill++) last[order[fill]!] = fill;
  return last;
}

function orderKey(order: number, isBuy: number): number {
  return order * 2 + isBuy;
}

class PositionState {
  readonly #walk: Walk;
  readonly #position: number;
  readonly #value: Valuation;
  readonly #fifo: FifoPosition;
  readonly #average: AverageCostPosition;
  /** The trade since the position was flat. */
  #flat: Trade | null = null;
  /** By order and side: what its fills have closed so far. */
  readonly #orders = new Map<number, Trade>();
  #fills = 0;
  #first: number = none;
  #last: number = none;
  #fees = 0n;
  #looseFees = 0n;
  #feeCurrency: number = none;

  constructor(walk: Walk, position: number, value: Valuation, isLinear: boolean) {
    this.#walk = walk;
    this.#position = position;
    this.#value = value;
    this.#fifo = new FifoPosition(walk.fills, value, isLinear);
    this.#average = new AverageCostPosition(walk.fills, value);
  }

  add(fill: number): void {
    const { fee, quantity, feeCurrency } = this.#walk.fills;
    if (this.#fills++ === 0) this.#first = fill;
    this.#last = fill;
    if (fee[fill] !== 0n) {
      this.#fees += fee[fill]!;
      this.#feeCurrency = sameCurrency(this.#feeCurrency, feeCurrency[fill]!);
      if (quantity[fill] === 0n) this.#looseFees += fee[fill]!;
    }
    this.#average.add(fill);
    this.#fifo.add(fill, this.#onMatch);
  }

  readonly #onMatch = (match: Match) => {
    const { fills, grouping, onTrade, onMatch } = this.#walk;
    onMatch?.(match);
    if (onTrade === undefined) return;
    if (grouping === "match") {
      const trade = this.#begin(match.entry);
      trade.add(match);
      onTrade(trade);
    } else if (grouping === "order") {
      // an order has one side, but a gateway that gives its id to two must not make a trade of both
      const key = orderKey(fills.order![match.exit]!, fills.isBuy[match.exit]!);
      const trade = this.#orders.get(key) ?? this.#begin(match.entry);
      trade.add(match);
      this.#orders.set(key, trade);
    } else {
      this.#flat ??= this.#begin(match.entry);
      this.#flat.add(match);
      if (!this.#fifo.isFlat) return;
      onTrade(this.#flat);
      this.#flat = null;
    }
  };

  #begin(entry: number): Trade {
    return new Trade(this.#walk.fills, entry, this.#walk.withPaths ?? false);
  }

  endOrder(order: number): void {
    for (const side of [0, 1]) {
      const key = orderKey(order, side);
      const trade = this.#orders.get(key);
      if (trade === undefined) continue;
      this.#orders.delete(key);
      this.#walk.onTrade?.(trade);
    }
  }

  end(): FinalPosition {
    const { onTrade } = this.#walk;
    const mark = this.#mark();
    for (const trade of this.#orders.values()) onTrade?.(trade);
    if (!this.#fifo.isFlat) {
      let open = this.#flat;
      let before = 0n;
      for (const lot of this.#fifo.lots()) {
        open ??= this.#begin(lot.fill);
        // the value of all lots up to this one minus those before, so that rounding does not change their sum
        const upTo = before + lot.quantity;
        open.addOpen(lot, this.#value(upTo, mark.price) - this.#value(before, mark.price), mark);
        before = upTo;
      }
      onTrade?.(open!);
    }
    const quantity = this.#fifo.quantity;
    return {
      position: this.#position,
      fills: this.#fills,
      first: this.#first,
      last: this.#last,
      quantity,
      averageCost: this.#average.cost,
      fifoCost: this.#fifo.cost,
      value: this.#value(quantity, mark.price),
      mark,
      flow: this.#average.flow,
      fees: this.#fees,
      feeCurrency: this.#feeCurrency,
      looseFees: this.#looseFees,
    };
  }

  #mark(): Mark {
    const bars = this.#walk.barsOf(this.#position);
    if (bars !== null && bars.count > 0) {
      const { ts, price } = bars.close;
      return { price: price[bars.count - 1]!, ts: ts[bars.count - 1]!, source: "bar" };
    }
    const { ts, price } = this.#walk.fills;
    return { price: price[this.#last]!, ts: ts[this.#last]!, source: "fill" };
  }
}
