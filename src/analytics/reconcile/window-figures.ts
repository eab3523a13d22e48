import { squareRoot } from "../../model/fixed-point.ts";

/** How a figure of a window of equity points may have been computed. */
export interface FigureConvention {
  /** `(]`: a point at the window's end belongs to it; `[)`: to the next. */
  readonly edge: "(]" | "[)";
  /** What the first return is against: the point before the window, or the first one in it. */
  readonly base: "before" | "first";
  /** Whether deposits and withdrawals are taken off first. */
  readonly flows: boolean;
  readonly ddof: 0 | 1;
  /** Periods a year. */
  readonly periods: number;
}

/** Of the returns of a window, in the order of its points. */
export interface Moments {
  readonly n: number;
  readonly mean: number;
  /** Sum of squared deviations from the mean. */
  readonly squares: number;
  readonly totalReturn: number;
  readonly drawdown: number;
}

/** The moments of simple returns: Welford's update, and the compounded return with its drawdown from the running peak. */
export function momentsOf(base: number, equity: Float64Array, flows: Float64Array | null): Moments {
  let [previous, grown, peak, drawdown, mean, squares] = [base, 1, 1, 0, 0, 0];
  for (let point = 0; point < equity.length; point++) {
    const step = (equity[point]! - (flows?.[point] ?? 0)) / previous - 1;
    previous = equity[point]!;
    grown *= 1 + step;
    if (grown > peak) peak = grown;
    drawdown = Math.min(drawdown, grown / peak - 1);
    const off = step - mean;
    mean += off / (point + 1);
    squares += off * (step - mean);
  }
  return { n: equity.length, mean, squares, totalReturn: grown - 1, drawdown };
}

/** The figures that are recomputed, by the names that gateways give them. */
export const knownFigures: ReadonlyMap<string, (moments: Moments, convention: FigureConvention) => number> =
  new Map([
    ["total_return", ({ n, totalReturn }) => (n === 0 ? Number.NaN : totalReturn)],
    ["max_drawdown", ({ drawdown }) => drawdown],
    [
      "volatility",
      (moments, convention) => deviationOf(moments, convention) * squareRoot(convention.periods),
    ],
    [
      "sharpe",
      (moments, convention) => {
        const deviation = deviationOf(moments, convention);
        return deviation > 0 ? (moments.mean / deviation) * squareRoot(convention.periods) : Number.NaN;
      },
    ],
  ]);

function deviationOf({ n, squares }: Moments, { ddof }: FigureConvention): number {
  return n > 1 ? squareRoot(squares / (n - ddof)) : Number.NaN;
}

/** Whether two ways of adding up the same doubles may have led to these. */
export function isSame(a: number, b: number): boolean {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  return a === b || Math.abs(a - b) <= Math.max(1e-9 * Math.max(Math.abs(a), Math.abs(b)), 1e-12);
}
