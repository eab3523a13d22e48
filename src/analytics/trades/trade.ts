import { divideHalfEven } from "../../model/fixed-point.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { BarColumns } from "./bar-columns.ts";
import type { Lot, Match } from "./fifo-position.ts";
import type { FillColumns } from "./fill-columns.ts";
import { rescale } from "./valuation.ts";

/**
 * The definition of one trade. `flat`: from a flat position to the next flat one. `order`: what the fills of one order
 * closed. `match`: what one fill closed of another. (Lean calls the first FlatToFlat and the last FillToFill.)
 */
export const groupings = ["flat", "order", "match"] as const;
export type Grouping = (typeof groupings)[number];

/** In place of an index: there is none, or there are several. */
export const none = -1;
export const several = -2;

/** What an open position is marked at. */
export interface Mark {
  readonly price: bigint;
  readonly ts: Nanoseconds;
  /** The close of the last bar, or, without bars, the last fill. */
  readonly source: "bar" | "fill";
}

/** The best and worst result of one unit between entry and exit, in price. */
export interface Excursions {
  /** Maximum adverse excursion: zero or below, unless the position never was worse. */
  readonly mae: bigint;
  /** Maximum favourable excursion. */
  readonly mfe: bigint;
  /** From whole bars between entry and exit; else from the trade's own fills alone. */
  readonly source: "bars" | "fills";
}

/** A trade as it grows, match by match. */
export class Trade {
  /** Index of its position. */
  readonly position: number;
  readonly isLong: boolean;
  readonly #fills: FillColumns;
  /** Fills by index: the first that opened, the last that opened, and the last that closed or `none`. */
  readonly entry: number;
  lastEntry: number;
  exit: number = none;
  /** How many fills opened and closed it. */
  entryFills = 1;
  exitFills = 0;
  /** Opened; above zero. */
  quantity = 0n;
  exitQuantity = 0n;
  /** Σ price × quantity, with the decimals of both. */
  entryAmount = 0n;
  exitAmount = 0n;
  /** Profit before fees, in money; open quantities at their mark. */
  gross = 0n;
  fees = 0n;
  /** Index of the currency of its fees, `none` where they are all zero, `several` where they cannot be added. */
  feeCurrency: number = none;
  /** Index of the venue of its fills, or `several`. */
  venue: number;
  /** The mark of the part that is open at the end. */
  mark: Mark | null = null;
  #low: bigint;
  #high: bigint;

  constructor(fills: FillColumns, entry: number) {
    this.#fills = fills;
    this.position = fills.position[entry]!;
    this.isLong = fills.isBuy[entry] === 1;
    this.entry = entry;
    this.lastEntry = entry;
    this.venue = fills.venue[entry]!;
    this.#low = fills.price[entry]!;
    this.#high = this.#low;
  }

  get isOpen(): boolean {
    return this.mark !== null;
  }

  add({ entry, exit, quantity, entryFee, exitFee, entryValue, exitValue }: Match): void {
    this.#enter(entry, quantity, entryFee);
    if (exit !== this.exit) {
      this.exit = exit;
      this.exitFills++;
      this.#meet(exit);
    }
    this.exitQuantity += quantity;
    this.exitAmount += quantity * this.#fills.price[exit]!;
    this.#charge(exit, exitFee);
    this.gross += this.isLong ? exitValue - entryValue : entryValue - exitValue;
  }

  /** Adds a lot that is open at the end. `worth` is the value of its quantity at the mark. */
  addOpen({ fill, quantity, fee, value }: Lot, worth: bigint, mark: Mark): void {
    this.#enter(fill, quantity, fee);
    this.gross += this.isLong ? worth - value : value - worth;
    this.mark = mark;
    this.#reach(mark.price);
  }

  /** Profit less fees, in money; null if the fees are in another currency than the profit. */
  get net(): bigint | null {
    return netOf(this.#fills, this, this.gross);
  }

  get from(): Nanoseconds {
    return this.#fills.ts[this.entry]!;
  }

  /** The last exit; for an open trade its mark, or its last fill if later. */
  get to(): Nanoseconds {
    const last = this.#fills.ts[this.mark === null ? this.exit : Math.max(this.lastEntry, this.exit)]!;
    return this.mark !== null && this.mark.ts > last ? this.mark.ts : last;
  }

  /** Average price, rounded half-even to the decimals of prices. */
  get entryPrice(): bigint {
    return divideHalfEven(this.entryAmount, this.quantity);
  }

  get exitPrice(): bigint | null {
    return this.exitQuantity === 0n ? null : divideHalfEven(this.exitAmount, this.exitQuantity);
  }

  /**
   * MAE and MFE from the bars that open at or after the first entry and close at or before the last exit, and from its
   * own fills. The bars that entry and exit fall into are left out: they hold prices of before and after.
   */
  excursions(bars: BarColumns | null): Excursions {
    const within = bars?.within(this.from, this.to) ?? null;
    const low = within !== null && within.low < this.#low ? within.low : this.#low;
    const high = within !== null && within.high > this.#high ? within.high : this.#high;
    const entry = this.entryPrice;
    const source = within === null ? "fills" : "bars";
    return this.isLong
      ? { mae: low - entry, mfe: high - entry, source }
      : { mae: entry - high, mfe: entry - low, source };
  }

  #enter(fill: number, quantity: bigint, fee: bigint): void {
    if (fill !== this.lastEntry) {
      this.lastEntry = fill;
      this.entryFills++;
      this.#meet(fill);
    }
    this.quantity += quantity;
    this.entryAmount += quantity * this.#fills.price[fill]!;
    this.#charge(fill, fee);
  }

  #meet(fill: number): void {
    this.#reach(this.#fills.price[fill]!);
    if (this.#fills.venue[fill] !== this.venue) this.venue = several;
  }

  #reach(price: bigint): void {
    if (price < this.#low) this.#low = price;
    if (price > this.#high) this.#high = price;
  }

  #charge(fill: number, fee: bigint): void {
    if (fee === 0n) return;
    this.fees += fee;
    this.feeCurrency = sameCurrency(this.feeCurrency, this.#fills.feeCurrency[fill]!);
  }
}

/** Fees as a trade or a position has them. */
export interface Fees {
  readonly position: number;
  readonly fees: bigint;
  /** Index of their currency, `none` where they are all zero, `several` where they cannot be added. */
  readonly feeCurrency: number;
}

/** A profit less fees, in money; null if the fees are in another currency than the profit. */
export function netOf(
  fills: FillColumns,
  { position, fees, feeCurrency }: Fees,
  gross: bigint,
): bigint | null {
  if (feeCurrency === several) return null;
  const { feeCurrencies, positions, scales } = fills;
  const { currency } = positions[position]!.instrument;
  if (feeCurrency !== none && feeCurrencies[feeCurrency] !== currency) return null;
  return gross - rescale(fees, scales.fee, scales.money);
}

/** The currency of fees to which one in another currency, or in the same, is added. */
export function sameCurrency(held: number, added: number): number {
  return held === none || held === added ? added : several;
}
