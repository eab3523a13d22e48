import { type Nanos, openPosition, type Position, type Side } from "./position.ts";

/**
 * How an account reports its holdings. `spot`: cash pays for purchases, and a position is worth its market value.
 * `margin`: cash changes by realized profit, fees and transfers, and a position is worth its unrealized profit. Equity
 * is the same under both.
 */
export type Accounting = "spot" | "margin";

/** An instrument in the books: its position and the prices it is marked to. */
export interface Holding {
  /** Signed, in lots. */
  readonly lots: number;
  /** The latest close seen, and the one before it, in ticks; 0 if there is none. */
  readonly close: number;
  readonly closeBefore: number;
  /** The value of open lots at the latest close. */
  readonly value: Nanos;
  /** Books a fill and returns its fee, which is negative for a rebate. */
  fill(side: Side, ticks: number, lots: number, feeOf: (notional: Nanos) => Nanos): Nanos;
  /** Records a bar's close. */
  see(close: number): void;
}

/**
 * An account at a moment: equity = cash + positionValue and equity - deposited = realized + unrealized, both exactly.
 */
export interface Mark {
  readonly cash: Nanos;
  readonly positionValue: Nanos;
  readonly equity: Nanos;
  /** Profit on closed lots, less fees, plus funding, interest and adjustments. */
  readonly realized: Nanos;
  readonly unrealized: Nanos;
}

/** The books of an account in one currency. All arithmetic is exact. */
export interface Ledger {
  readonly currency: string;
  readonly holdings: readonly Holding[];
  /** Opens an instrument; `nanosPerTickLot` is the value of one lot at a price of one tick. */
  open(nanosPerTickLot: Nanos): Holding;
  /** Books a deposit or, if negative, a withdrawal, which is not profit. */
  deposit(amount: Nanos): void;
  /** Books money gained or, if negative, lost by holding something: funding, interest, an adjustment. */
  earn(amount: Nanos): void;
  /** Marks everything to the latest close, but `stale` to the one before. */
  mark(stale?: Holding): Mark;
}

export function openLedger(currency: string, accounting: Accounting): Ledger {
  const held: { readonly holding: Holding; readonly position: Position }[] = [];
  const holdings: Holding[] = [];
  let deposited = 0n;
  // the money left after paying for every purchase
  let paid = 0n;
  return {
    currency,
    holdings,
    open(nanosPerTickLot) {
      const position = openPosition(nanosPerTickLot);
      let close = 0;
      let closeBefore = 0;
      const holding: Holding = {
        get lots() {
          return position.lots;
        },
        get close() {
          return close;
        },
        get closeBefore() {
          return closeBefore;
        },
        get value() {
          return position.value(close);
        },
        fill(side, ticks, lots, feeOf) {
          const notional = position.fill(side, ticks, lots);
          const fee = feeOf(notional);
          paid -= (side === "BUY" ? notional : -notional) + fee;
          return fee;
        },
        see(next) {
          closeBefore = close;
          close = next;
        },
      };
      held.push({ holding, position });
      holdings.push(holding);
      return holding;
    },
    deposit(amount) {
      deposited += amount;
      paid += amount;
    },
    earn(amount) {
      paid += amount;
    },
    mark(stale) {
      let value = 0n;
      let cost = 0n;
      for (const { holding, position } of held) {
        value += holding === stale ? position.value(holding.closeBefore) : holding.value;
        cost += position.cost;
      }
      const equity = paid + value;
      const unrealized = value - cost;
      return {
        cash: accounting === "spot" ? paid : paid + cost,
        positionValue: accounting === "spot" ? value : unrealized,
        equity,
        realized: equity - deposited - unrealized,
        unrealized,
      };
    },
  };
}
