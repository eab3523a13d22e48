/** An exact number: `value / 10^scale`. */
export interface Exact {
  readonly value: bigint;
  readonly scale: number;
}

/** How a price becomes money. */
export const contractKinds = ["linear", "inverse"] as const;
/**
 * linear: a unit is worth price × multiplier, in the currency that the price is quoted in. inverse: a unit is a contract
 * over a fixed amount of the quote currency, and is worth -multiplier / price, in the currency that the price is of.
 */
export type ContractKind = (typeof contractKinds)[number];

/** Where an instrument's bars are. */
export interface BarSource {
  readonly symbol: string;
  readonly venue: string;
  /** Length of a bar, in nanoseconds. */
  readonly intervalNs: bigint;
}

/** Facts about a symbol and its venues that rows do not have. The fills of all these venues make one position. */
export interface Instrument {
  readonly symbol: string;
  /** The venues of its fills, in the order of their names. */
  readonly venues: readonly string[];
  /** The currency that profit and loss are counted in. */
  readonly currency: string;
  readonly multiplier: Exact;
  readonly kind: ContractKind;
  /** Null if the run has no bars of it. */
  readonly bars: BarSource | null;
}

/** Parses an exact decimal such as `0.001`: digits, with or without a point and further digits. */
export function exactOf(text: string): Exact {
  const [whole = "", fraction = ""] = text.split(".");
  const kept = fraction.replace(/0+$/, "");
  return { value: BigInt(whole + kept), scale: kept.length };
}

/** The same value in units of 10^-scale, which must not be coarser than its own. */
export function atScale({ value, scale: own }: Exact, scale: number): bigint {
  return value * 10n ** BigInt(scale - own);
}
