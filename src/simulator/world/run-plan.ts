import type { TableName } from "../../model/profile/table.ts";
import type { BarSource } from "../bars/bars.ts";

/** Everything that decides a run's rows. */
export interface RunPlan {
  readonly instanceId: string;
  readonly runId: string;
  /** Seeds every choice of the run. */
  readonly seed: string;
  readonly bars: BarSource;
  /** Bars the run sees before it ends, at most `bars.count`. */
  readonly barCount: number;
  readonly failed: boolean;
  /** Exactly so many fills; undefined lets the strategy decide. */
  readonly fills: number | undefined;
  readonly symbol: string;
  /** Where the bars come from; orders go there and to its dark pool. */
  readonly venue: string;
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
  readonly strategy: string;
  /** A lot is 10^-lotDecimals of the instrument; ticks and lots together have at most nine decimals. */
  readonly lotDecimals: number;
  /** Cash at the start, in whole units of the currency. */
  readonly initialCash: bigint;
  /** True for sequence numbers beyond 2^53. */
  readonly largeSeq: boolean;
}

/** Where a strategy's rows go. Times are microseconds and the nanoseconds behind them; see TableWriter. */
export type RowSink = (table: TableName, micros: number, nanos: number, fields: string) => void;
