import type { Nanoseconds } from "../../model/time.ts";
import type { Instrument } from "../instruments/instrument.ts";
import type { Lot, Match } from "./fifo-position.ts";
import type { FillColumns } from "./fill-columns.ts";
import { type Excursions, type Market, TradePath } from "./trade-path.ts";
import { amountOf, averagePrice, rescale } from "./valuation.ts";

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

/** A trade as it grows, match by match. */
export class Trade {
  /** Index of its position. */
  readonly position: number;
  readonly isLong: boolean;
  readonly #fills: FillColumns;
  readonly #kind: Instrument["kind"];
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
  /** What average prices are made of: Σ price × quantity, or, of an inverse contract, Σ quantity / price. */
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
  /** Only if excursions are wanted: a trade may have millions of fills. */
  readonly #path: TradePath | null;

  constructor(fills: FillColumns, entry: number, withPath: boolean) {
    this.#fills = fills;
    this.position = fills.position[entry]!;
    this.#kind = fills.positions[this.position]!.instrument.kind;
    this.isLong = fills.isBuy[entry] === 1;
    this.entry = entry;
    this.lastEntry = entry;
    this.venue = fills.venue[entry]!;
    this.#path = withPath ? new TradePath() : null;
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
    this.exitAmount += amountOf(this.#kind, quantity, this.#fills.price[exit]!);
    this.#path?.exit(exit, quantity);
    this.#charge(exit, exitFee);
    this.gross += this.isLong ? exitValue - entryValue : entryValue - exitValue;
  }

  /** Adds a lot that is open at the end. `worth` is the value of its quantity at the mark. */
  addOpen({ fill, quantity, fee, value }: Lot, worth: bigint, mark: Mark): void {
    this.#enter(fill, quantity, fee);
    this.gross += this.isLong ? worth - value : value - worth;
    this.mark = mark;
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

  /** Average price, of an inverse contract the harmonic mean, rounded half-even to the decimals of prices. */
  get entryPrice(): bigint {
    return averagePrice(this.#kind, this.quantity, this.entryAmount);
  }

  get exitPrice(): bigint | null {
    return this.exitQuantity === 0n ? null : averagePrice(this.#kind, this.exitQuantity, this.exitAmount);
  }

  /** MAE and MFE. Throws unless the walk was made `withPaths`. */
  excursions(market: Market): Excursions {
    if (this.#path === null) throw new TypeError("excursions need a walk with paths");
    return this.#path.excursions(this.#fills, this, market);
  }

  #enter(fill: number, quantity: bigint, fee: bigint): void {
    if (fill !== this.lastEntry) {
      this.lastEntry = fill;
      this.entryFills++;
      this.#meet(fill);
    }
    this.quantity += quantity;
    this.entryAmount += amountOf(this.#kind, quantity, this.#fills.price[fill]!);
    this.#path?.enter(fill, quantity);
    this.#charge(fill, fee);
  }

  #meet(fill: number): void {
    if (this.#fills.venue[fill] !== this.venue) this.venue = several;
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
