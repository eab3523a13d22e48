import type { TableName } from "../../model/profile/table.ts";
import type { BarSource } from "../bars/bars.ts";
import type { BookFault } from "../books/book-fault.ts";
import type { Accounting } from "../books/ledger.ts";

/** An instrument that a run trades. */
export interface InstrumentPlan {
  readonly symbol: string;
  /** The currency of its prices and fees, one of the run's. */
  readonly currency: string;
}

/** Everything that decides a run's rows. */
export interface RunPlan {
  readonly instanceId: string;
  readonly runId: string;
  readonly seed: string;
  /** Bars of the first instrument; those of the others are at the same times. */
  readonly bars: BarSource;
  /** The number of bars before the run ends, at most `bars.count`. */
  readonly barCount: number;
  readonly failed: boolean;
  /** The exact number of fills; undefined lets the strategy decide. */
  readonly fills: number | undefined;
  /** One or more. */
  readonly instruments: readonly InstrumentPlan[];
  /** The bars' venue; orders go there and to its dark pool. */
  readonly venue: string;
  readonly account: string;
  readonly portfolio: string;
  /** One or more; the account has cash in each. */
  readonly currencies: readonly string[];
  readonly accounting: Accounting;
  /** Hundredths of a basis point by which every fill beats the market's price. */
  readonly edge: number;
  /** Deposits and withdrawals in each currency, after the start. */
  readonly transfers: number;
  /** The time between settlements of funding; 0 for never. */
  readonly fundingMicros: number;
  readonly strategy: string;
  /** A lot is 10^-lotDecimals of the instrument; ticks and lots together have at most nine decimals. */
  readonly lotDecimals: number;
  /** Cash at the start, in whole units of each currency. */
  readonly initialCash: bigint;
  /** True for sequence numbers beyond 2^53. */
  readonly largeSeq: boolean;
  readonly fault: BookFault | undefined;
}

/** Receives a strategy's rows. Times are microseconds plus nanoseconds; see TableWriter. */
export type RowSink = (table: TableName, micros: number, nanos: number, fields: string) => void;
