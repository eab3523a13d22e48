import { formatScaled } from "../../model/fixed-point.ts";
import { canonicalDouble } from "../../row/line.ts";
import type { Bar } from "../bars/bars.ts";
import type { BookBreak } from "../books/book-break.ts";
import type { Holding, Ledger } from "../books/ledger.ts";
import type { Nanos } from "../books/position.ts";
import { type EquityStatistics, equityStatistics, statisticsConvention } from "../books/statistics.ts";
import type { RowSink, RunPlan } from "./run-plan.ts";

const dayMicros = 86_400_000_000;
/** By how much a faulty point's equity exceeds its cash and position value: 0.01. */
const equityShift = 10_000_000n;

/** Emits an account's equity in one currency, bar by bar, and its figures. */
export interface AccountRows {
  /** The equity at the latest point; before the first one, the deposit. */
  readonly equity: Nanos;
  /** Records a deposit or, if negative, a withdrawal since the latest point. */
  flow(amount: Nanos): void;
  /** Emits the point at a bar's close, after the figures of an ended day. */
  point(bar: Bar): void;
  /** Emits the figures of the run, right after its last bar. */
  end(bar: Bar): void;
}

/** Starts with books that have nothing but the initial deposit. */
export function accountRows(plan: RunPlan, ledger: Ledger, books: BookBreak, emit: RowSink): AccountRows {
  const head = `"resource_key":"portfolio.${plan.portfolio}","account":${JSON.stringify(plan.account)},"portfolio":${JSON.stringify(plan.portfolio)},"venue":"","symbol":"",`;
  const currency = JSON.stringify(ledger.currency);
  const convention = JSON.stringify(statisticsConvention(plan.transfers > 0));
  let { equity } = ledger.mark();
  const runFigures = equityStatistics(Number(equity));
  let dayFigures = equityStatistics(Number(equity));
  let day = -1;
  let flowed = 0n;

  const metrics = (micros: number, nanos: number, window: string, figures: EquityStatistics): void => {
    const odd = new Map(figures.figures(0).map(({ name, value }) => [name, value]));
    for (const { name, value } of figures.figures()) {
      // a figure depends on ddof if another ddof changes it
      const other = odd.get(name)!;
      const isOdd = Number.isFinite(value) && other !== value && books.at("other-metric");
      emit(
        "metrics",
        micros,
        nanos,
        `${head}"name":"${name}","value":${canonicalDouble(isOdd ? other : value)},"window":"${window}","convention":${convention},"currency":${currency}}`,
      );
    }
  };

  const isStale = (holding: Holding): boolean =>
    holding.lots !== 0 &&
    holding.closeBefore !== 0 &&
    holding.closeBefore !== holding.close &&
    books.at("wrong-mark");

  return {
    get equity() {
      return equity;
    },
    flow(amount) {
      flowed += amount;
    },
    point(bar) {
      // the close of a bar at midnight belongs to the day that ends
      const barDay = Math.ceil(bar.closeMicros / dayMicros);
      if (day >= 0 && barDay !== day) {
        metrics(day * dayMicros, 0, "day", dayFigures);
        dayFigures = equityStatistics(Number(equity));
      }
      day = barDay;
      const mark = ledger.mark(ledger.holdings.find(isStale));
      equity = books.at("shift-equity") ? mark.equity + equityShift : mark.equity;
      emit(
        "equity",
        bar.closeMicros,
        bar.closeNanos,
        `${head}"currency":${currency},"cash":"${formatScaled(mark.cash, 9)}","position_value":"${formatScaled(mark.positionValue, 9)}","equity":"${formatScaled(equity, 9)}","realized":"${formatScaled(mark.realized, 9)}","unrealized":"${formatScaled(mark.unrealized, 9)}"}`,
      );
      runFigures.add(Number(equity), Number(flowed));
      dayFigures.add(Number(equity), Number(flowed));
      flowed = 0n;
    },
    end(bar) {
      metrics(bar.closeMicros, bar.closeNanos + 1 > 999 ? 999 : bar.closeNanos + 1, "run", runFigures);
    },
  };
}
