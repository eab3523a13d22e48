import { RunvaultError } from "../../model/error.ts";
import { divideHalfEven } from "../../model/fixed-point.ts";
import { atScale, type Instrument } from "../instruments/instrument.ts";

/** Decimals of a run's scaled integers: prices, quantities, fees, and their products. */
export interface Scales {
  readonly price: number;
  readonly quantity: number;
  readonly fee: number;
  readonly money: number;
}

/** Decimals that money has at least: those of a product of two columns of nine. */
const leastMoney = 18;

/** Money holds every price × quantity × multiplier of these instruments without rounding. */
export function scalesOf(
  price: number,
  quantity: number,
  fee: number,
  instruments: readonly Instrument[],
): Scales {
  const product = price + quantity + Math.max(0, ...instruments.map(({ multiplier }) => multiplier.scale));
  return { price, quantity, fee, money: Math.max(leastMoney, product, fee) };
}

/** The value of a signed quantity of an instrument at a price, in money. */
export type Valuation = (quantity: bigint, price: bigint) => bigint;

/**
 * price × quantity × multiplier, exactly; for an inverse contract -multiplier × quantity / price, rounded half-even to
 * the last decimal of money. Throws `value_out_of_range` for a price at which that is nothing.
 */
export function valuationOf({ symbol, multiplier, kind }: Instrument, scales: Scales): Valuation {
  const { price: ps, quantity: qs, money } = scales;
  if (kind === "linear") {
    const factor = atScale(multiplier, money - ps - qs);
    return (quantity, price) => quantity * price * factor;
  }
  const factor = atScale(multiplier, money + ps - qs);
  return (quantity, price) => {
    if (price <= 0n) {
      throw new RunvaultError(
        "value_out_of_range",
        `an inverse contract has no value at a price of ${price}`,
        {
          place: { table: "fills" },
          hint: `Look at the prices of ${symbol}, or correct its \`kind\` in the file of --instruments.`,
        },
      );
    }
    return divideHalfEven(-quantity * factor, price);
  };
}

/** The same in doubles, in the currency: for means over many prices, which are statistics. */
export function doubleValuationOf(
  instrument: Instrument,
  scales: Scales,
): (quantity: number, price: number) => number {
  const { multiplier, kind } = instrument;
  const unit = Number(multiplier.value) / 10 ** multiplier.scale / 10 ** scales.quantity;
  if (kind === "linear") {
    const factor = unit / 10 ** scales.price;
    return (quantity, price) => quantity * price * factor;
  }
  const exact = valuationOf(instrument, scales);
  const factor = unit * 10 ** scales.price;
  return (quantity, price) => {
    // this call throws the right error
    if (price <= 0) exact(1n, BigInt(price));
    return (-quantity / price) * factor;
  };
}

/** The price at which a quantity, which is not zero, is worth so much: rounded half-even; null if none is. */
export function priceAt(
  { multiplier, kind }: Instrument,
  scales: Scales,
  quantity: bigint,
  worth: bigint,
): bigint | null {
  const { price: ps, quantity: qs, money } = scales;
  const [dividend, divisor] =
    kind === "linear"
      ? [worth, quantity * atScale(multiplier, money - ps - qs)]
      : [-quantity * atScale(multiplier, money + ps - qs), worth];
  if (divisor === 0n) return null;
  return divisor < 0n ? divideHalfEven(-dividend, -divisor) : divideHalfEven(dividend, divisor);
}

/** Decimals of the quotients that harmonic means are made of: more than any price has digits, twice. */
const quotient = 10n ** 80n;

/** What average prices are made of. These amounts are added up; those of inverse contracts make a harmonic mean. */
export function amountOf(kind: Instrument["kind"], quantity: bigint, price: bigint): bigint {
  return kind === "linear" ? quantity * price : divideHalfEven(quantity * quotient, price);
}

/** The average price of a quantity that such amounts add up for: rounded half-even to the decimals of prices. */
export function averagePrice(kind: Instrument["kind"], quantity: bigint, amount: bigint): bigint {
  return kind === "linear" ? divideHalfEven(amount, quantity) : divideHalfEven(quantity * quotient, amount);
}

/** Scaled integers at a coarser scale, half-even; at a finer one exactly. */
export function rescale(value: bigint, from: number, to: number): bigint {
  return to >= from ? value * 10n ** BigInt(to - from) : divideHalfEven(value, 10n ** BigInt(from - to));
}

/**
 * The type for printing and storing money: decimals that hold it exactly unless types were widened, and 20 digits
 * before them.
 */
export const storedMoney = { precision: 38, scale: leastMoney } as const;
