import type { FillColumns } from "./fill-columns.ts";
import type { Valuation } from "./valuation.ts";

/** A quantity bought by one fill and sold by another. Valid until the next one. */
export interface Match {
  /** Fills by index; the one that opened came first. */
  readonly entry: number;
  readonly exit: number;
  /** Above zero. */
  readonly quantity: bigint;
  readonly entryFee: bigint;
  readonly exitFee: bigint;
  /** The quantity's value at either price, in money. */
  readonly entryValue: bigint;
  readonly exitValue: bigint;
}

/** A quantity of one fill that is still open. */
export interface Lot {
  readonly fill: number;
  readonly quantity: bigint;
  readonly fee: bigint;
  readonly value: bigint;
}

/**
 * One position by first in, first out: the k-th unit bought is matched with the k-th unit sold, through long and short
 * alike. A part of a fill gets its fee by quantity, truncated toward zero, and the last part gets the rest, so that the
 * parts add up to the fee exactly; the values of its parts add up to that of the fill.
 */
export class FifoPosition {
  readonly #fills: FillColumns;
  readonly #value: Valuation;
  readonly #isLinear: boolean;
  // the open lots, from #first on; their fills have one side
  #lots: number[] = [];
  #quantities: bigint[] = [];
  #fees: bigint[] = [];
  #first = 0;
  #quantity = 0n;
  #cost = 0n;

  constructor(fills: FillColumns, value: Valuation, isLinear: boolean) {
    this.#fills = fills;
    this.#value = value;
    this.#isLinear = isLinear;
  }

  /** Signed: above zero when long. */
  get quantity(): bigint {
    return this.#quantity;
  }

  /** The value of the open lots when they were opened, in money; negative when a linear position is short. */
  get cost(): bigint {
    return this.#cost;
  }

  get isFlat(): boolean {
    return this.#first === this.#lots.length;
  }

  /** The open lots, oldest first. */
  *lots(): Generator<Lot> {
    for (let lot = this.#first; lot < this.#lots.length; lot++) {
      const fill = this.#lots[lot]!;
      const quantity = this.#quantities[lot]!;
      yield { fill, quantity, fee: this.#fees[lot]!, value: this.#partValue(fill, quantity, quantity) };
    }
  }

  /** Books a fill, and tells of its matches as they are made; a fill of nothing makes none, and its fee is no lot's. */
  add(fill: number, onMatch?: (match: Match) => void): void {
    const { quantity, fee, isBuy } = this.#fills;
    const whole = quantity[fill]!;
    if (whole === 0n) return;
    const isLong = this.#quantity > 0n;
    let left = whole;
    let feeLeft = fee[fill]!;
    if (!this.isFlat && isLong !== (isBuy[fill] === 1)) {
      while (left > 0n && !this.isFlat) {
        const at = this.#first;
        const entry = this.#lots[at]!;
        const open = this.#quantities[at]!;
        const part = left < open ? left : open;
        const entryFee = part === open ? this.#fees[at]! : (fee[entry]! * part) / quantity[entry]!;
        const exitFee = part === left ? feeLeft : (fee[fill]! * part) / whole;
        const entryValue = this.#partValue(entry, open, part);
        const exitValue = this.#partValue(fill, left, part);
        left -= part;
        feeLeft -= exitFee;
        if (part === open) this.#dropFirst();
        else {
          this.#quantities[at] = open - part;
          this.#fees[at] = this.#fees[at]! - entryFee;
        }
        this.#quantity -= isLong ? part : -part;
        this.#cost -= isLong ? entryValue : -entryValue;
        onMatch?.({ entry, exit: fill, quantity: part, entryFee, exitFee, entryValue, exitValue });
      }
    }
    if (left === 0n) return;
    this.#lots.push(fill);
    this.#quantities.push(left);
    this.#fees.push(feeLeft);
    const value = this.#partValue(fill, left, left);
    this.#quantity += isBuy[fill] === 1 ? left : -left;
    this.#cost += isBuy[fill] === 1 ? value : -value;
  }

  /**
   * The value of a part of a fill of which `left` is not matched yet: for an inverse contract, by how much the fill's
   * value falls.
   */
  #partValue(fill: number, left: bigint, part: bigint): bigint {
    const price = this.#fills.price[fill]!;
    if (this.#isLinear) return this.#value(part, price);
    return this.#value(left, price) - this.#value(left - part, price);
  }

  #dropFirst(): void {
    this.#first++;
    if (this.#first === this.#lots.length) {
      this.#lots.length = 0;
      this.#quantities.length = 0;
      this.#fees.length = 0;
      this.#first = 0;
    } else if (this.#first >= 1024 && this.#first * 2 > this.#lots.length) {
      this.#lots = this.#lots.slice(this.#first);
      this.#quantities = this.#quantities.slice(this.#first);
      this.#fees = this.#fees.slice(this.#first);
      this.#first = 0;
    }
  }
}
