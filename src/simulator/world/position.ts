import { divideHalfEven } from "../../model/fixed-point.ts";

/** Amounts of money are whole nanos: 10^-9 of the currency. */
export type Nanos = bigint;

export type Side = "BUY" | "SELL";

/** Cash and one instrument's position of a portfolio. All arithmetic is exact. */
export interface Position {
  /** Signed, in lots. */
  readonly lots: number;
  readonly cash: Nanos;
  readonly fees: Nanos;
  /** Books a fill and gives its notional (price × quantity). `fee` is negative for a rebate. */
  fill(side: Side, ticks: number, lots: number, feeOf: (notional: Nanos) => Nanos): Nanos;
  /**
   * The portfolio marked to a price. equity = cash + value, equity - initial = realized + unrealized, both exactly:
   * unrealized is value less the average cost, and where that average is not representable realized takes the rest.
   */
  mark(ticks: number): { value: Nanos; equity: Nanos; realized: Nanos; unrealized: Nanos };
}

/** A portfolio that starts with `initial` cash; `nanosPerTickLot` is the value of one lot at a price of one tick. */
export function openPosition(initial: Nanos, nanosPerTickLot: Nanos): Position {
  let lots = 0;
  let cash = initial;
  let fees = 0n;
  // what the open lots cost; negative for a short position
  let cost = 0n;
  const worth = (ticks: number, quantity: number): Nanos =>
    BigInt(ticks) * BigInt(quantity) * nanosPerTickLot;
  return {
    get lots() {
      return lots;
    },
    get cash() {
      return cash;
    },
    get fees() {
      return fees;
    },
    fill(side, ticks, quantity, feeOf) {
      const notional = worth(ticks, quantity);
      const fee = feeOf(notional);
      const signed = side === "BUY" ? quantity : -quantity;
      cash -= (side === "BUY" ? notional : -notional) + fee;
      fees += fee;
      const closing = Math.sign(lots) === -Math.sign(signed) ? Math.min(Math.abs(lots), quantity) : 0;
      if (closing > 0) cost -= (cost * BigInt(closing)) / BigInt(Math.abs(lots));
      const opening = quantity - closing;
      if (opening > 0) cost += worth(ticks, Math.sign(signed) * opening);
      lots += signed;
      return notional;
    },
    mark(ticks) {
      const value = worth(ticks, lots);
      const equity = cash + value;
      const unrealized = value - cost;
      return { value, equity, realized: equity - initial - unrealized, unrealized };
    },
  };
}

/** `notional × hundredthsOfBasisPoint / 10^6`, rounded half-even to eight decimals of the currency. */
export function feeAt(hundredthsOfBasisPoint: bigint): (notional: Nanos) => Nanos {
  return (notional) => divideHalfEven(notional * hundredthsOfBasisPoint, 10_000_000n) * 10n;
}
