import { squareRoot } from "../../model/fixed-point.ts";

/** One-minute bars in a year of 365 days, for annualising bar figures. */
export const barsPerYear = 525_600;

/** How every figure here is computed: the `convention` of metric rows. */
export function statisticsConvention(hasTransfers: boolean): string {
  return (
    "simple returns of equity at each bar's close, the first against the equity before the window; " +
    `volatility and sharpe annualised by √${barsPerYear}, risk-free rate 0, ddof 1; drawdown from the running peak, at or below 0` +
    (hasTransfers
      ? "; deposits and withdrawals since the point before are taken off first, and total return and drawdown are of the compounded returns"
      : "")
  );
}

export interface Statistic {
  readonly name: string;
  readonly value: number;
}

/** Figures of an equity series, computed point by point in constant memory with + − × ÷ only. */
export interface EquityStatistics {
  /** `flow` is the deposit since the previous point, negative for a withdrawal: not a return. */
  add(equity: number, flow?: number): void;
  /** The figures so far, NaN with too few points; deviations divide by points less `ddof` (1). */
  figures(ddof?: number): readonly Statistic[];
}

/** `base` is the equity before the first point. */
export function equityStatistics(base: number): EquityStatistics {
  let previous = base;
  // 1 until money flows; then equity times it grows by the returns alone
  let unflowed = 1;
  let peak = base;
  let drawdown = 0;
  let count = 0;
  let mean = 0;
  let squares = 0;
  return {
    add(equity, flow = 0) {
      const step = (equity - flow) / previous - 1;
      previous = equity;
      if (flow !== 0) unflowed *= (equity - flow) / equity;
      const grown = equity * unflowed;
      if (grown > peak) peak = grown;
      drawdown = Math.min(drawdown, grown / peak - 1);
      // Welford's update of mean and sum of squared deviations
      count += 1;
      const off = step - mean;
      mean += off / count;
      squares += off * (step - mean);
    },
    figures(ddof = 1) {
      const deviation = count > 1 ? squareRoot(squares / (count - ddof)) : Number.NaN;
      const annual = squareRoot(barsPerYear);
      return [
        { name: "total_return", value: count > 0 ? (previous * unflowed) / base - 1 : Number.NaN },
        { name: "max_drawdown", value: drawdown },
        { name: "volatility", value: deviation * annual },
        { name: "sharpe", value: deviation > 0 ? (mean / deviation) * annual : Number.NaN },
      ];
    },
  };
}
