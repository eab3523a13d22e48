import { instantOf, macroRows, yearArguments } from "../../analytics/section/macro-rows.ts";
import type { MeasuredRun } from "../../analytics/section/section.ts";
import { columns, milliseconds, type SeriesKey } from "./read-curves.ts";
import { ReducedLines } from "./reduced-lines.ts";

/** Sharpe ratio and volatility of rolling windows, reduced to what a screen can show; NaN if there is none. */
export interface RollingRead extends SeriesKey {
  readonly times: Float64Array;
  readonly sharpe: Float64Array;
  readonly volatility: Float64Array;
}

/** The full windows of this many returns of each portfolio. */
export async function readRolling(run: MeasuredRun, window: number): Promise<readonly RollingRead[]> {
  const rows = await macroRows(run, {
    macro: "rolling",
    select: "sharpe, volatility, epoch_ns(ts) AS ts",
    more: { ...yearArguments(run.options), window_size: String(window) },
  });
  const byKey = Map.groupBy(rows, ({ account, portfolio, currency }) =>
    JSON.stringify({ account, portfolio, currency }),
  );
  return [...byKey].map(([key, own]) => {
    const full = own
      .slice(window - 1)
      .map(({ ts, sharpe, volatility }) => ({ ts: milliseconds(instantOf(ts)), sharpe, volatility }))
      .sort((a, b) => a.ts - b.ts);
    const [first, last] = [full[0]?.ts ?? 0, full.at(-1)?.ts ?? 0];
    const lines = new ReducedLines(first, last, columns);
    const value = (of: unknown) => (of === null ? Number.NaN : Number(of));
    for (const { ts, sharpe, volatility } of full) lines.add(ts, value(sharpe), value(volatility));
    const { times, upper, lower } = lines.points();
    return { ...(JSON.parse(key) as SeriesKey), times, sharpe: upper, volatility: lower };
  });
}

/** The default window: a quarter of a year in days, less for shorter runs; null if it would be too short. */
export function usualWindow(returns: number): number | null {
  if (returns >= 252) return 63;
  const third = Math.floor(returns / 3);
  return third >= 5 ? third : null;
}
