import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import type { FillOrder } from "../trades/fill-columns.ts";
import type { Grouping } from "../trades/trade.ts";
import type { BenchmarkPrices } from "./read-benchmark.ts";
import type { Rates } from "./read-rates.ts";

/** How figures are computed: what the conventions leave open. */
export interface MetricsOptions {
  /** `utc`, `bars` (every equity row a period), a time zone, or one with the time at which its day ends. */
  readonly session: string;
  /** Whether days without rows repeat the last equity. */
  readonly fill: boolean;
  /** Periods a year; `data` counts them; null follows from session and fill. */
  readonly periods: number | "data" | null;
  /** Yearly risk-free rate: 0.02 is 2 %. */
  readonly rf: number;
  /** Logarithmic returns instead of simple ones. */
  readonly log: boolean;
  readonly base: "deposit" | "first";
  readonly benchmark: Benchmark | null;
  /** Rates for adding several currencies; without them nothing is added. */
  readonly rates: Rates | null;
  /** The yearly Sharpe ratio that the probabilistic one is compared with. */
  readonly psrBenchmark: number;
  /** The yearly return above which Omega counts a gain. */
  readonly omegaReturn: number;
  readonly group: Grouping;
  /** How fills that share an instant are ordered; `auto`: so that the run's books balance. */
  readonly fillOrder: FillOrder | "auto";
  /** Returns of a rolling window; null for none. */
  readonly window: number | null;
  readonly instruments: InstrumentsFile | null;
  /** Age of the oldest book that a fill is compared with, in milliseconds. */
  readonly bookAgeMs: number;
  /** Over how many bars returns after a factor's value are measured; rising. */
  readonly horizons: readonly number[];
}

/** The benchmark of a run. */
export type Benchmark =
  | { readonly kind: "symbol"; readonly symbol: string }
  | { readonly kind: "prices"; readonly prices: BenchmarkPrices };
