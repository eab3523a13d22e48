import { divideHalfEven } from "../../model/fixed-point.ts";

/** Amounts of money are whole nanos: 10^-9 of the currency. */
export type Nanos = bigint;

export type Side = "BUY" | "SELL";

/** One instrument's position, kept by average cost. All arithmetic is exact. */
export interface Position {
  /** Signed, in lots. */
  readonly lots: number;
  /**
   * The cost of open lots; negative for a short position. A fill that reduces the position removes its share of the
   * cost, truncated toward zero: if the average is not representable, realized profit takes the rest.
   */
  readonly cost: Nanos;
  /** Books a fill and returns its notional: price × quantity. */
  fill(side: Side, ticks: number, lots: number): Nanos;
  /** The value of open lots at a price; negative for a short position. */
  value(ticks: number): Nanos;
}

/** An empty position; `nanosPerTickLot` is the value of one lot at a price of one tick. */
export function openPosition(nanosPerTickLot: Nanos): Position {
  let lots = 0;
  let cost = 0n;
  const worth = (ticks: number, quantity: number): Nanos =>
    BigInt(ticks) * BigInt(quantity) * nanosPerTickLot;
  return {
    get lots() {
      return lots;
    },
    get cost() {
      return cost;
    },
    fill(side, ticks, quantity) {
      const signed = side === "BUY" ? quantity : -quantity;
      const closing = Math.sign(lots) === -Math.sign(signed) ? Math.min(Math.abs(lots), quantity) : 0;
      if (closing > 0) cost -= (cost * BigInt(closing)) / BigInt(Math.abs(lots));
      const opening = quantity - closing;
      if (opening > 0) cost += worth(ticks, Math.sign(signed) * opening);
      lots += signed;
      return worth(ticks, quantity);
    },
    value: (ticks) => worth(ticks, lots),
  };
}

/**
 * `amount × hundredthsOfBasisPoint / 10^6`, rounded half-even to eight decimals of the currency, for fees, funding and
 * interest.
 */
export function shareOf(hundredthsOfBasisPoint: bigint): (amount: Nanos) => Nanos {
  return (amount) => divideHalfEven(amount * hundredthsOfBasisPoint, 10_000_000n) * 10n;
}
