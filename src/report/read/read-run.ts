import type { MetricsRun } from "../../analytics/metrics/metrics-document.ts";
import type { MeasuredRun } from "../../analytics/section/section.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { type BusiestDay, readBusiestDay } from "./read-candles.ts";
import { type Curve, readCurves } from "./read-curves.ts";
import { type EventsRead, readEvents } from "./read-events.ts";
import { type RollingRead, readRolling, usualWindow } from "./read-rolling.ts";
import { readTrades, type TradesRead } from "./read-trades.ts";

/** The data for charts, besides a run's figures. */
export interface RunRead {
  readonly manifest: Manifest;
  readonly curves: readonly Curve[];
  /** Returns of a rolling window; null if the run has too few for any. */
  readonly window: number | null;
  readonly rolling: readonly RollingRead[];
  readonly trades: readonly TradesRead[];
  readonly busiestDay: BusiestDay | string;
  readonly events: EventsRead;
  /** The traded symbols, with their venues. */
  readonly symbols: readonly { readonly symbol: string; readonly venues: readonly string[] }[];
  /** One line per instrument: the properties used, and which of them were assumed. */
  readonly instruments: readonly string[];
}

/** Reads a run while its rows are visible. `told` has its figures: sections absent there are not read. */
export async function readRun(measured: MeasuredRun, told: MetricsRun): Promise<RunRead> {
  const { manifest } = measured;
  const absent = (name: string) => told.sections.find((section) => section.name === name)?.absent ?? null;
  const hasSeries = absent("performance") === null;
  const { curves, window, rolling } = hasSeries ? await readSeries(measured) : noSeries;
  const noTrades = absent("trades");
  const trades = noTrades === null ? await measured.trades() : null;
  const hasFills = trades !== null && trades.fills.count > 0;
  const fills = hasFills ? [trades.fills.ts[0]!, trades.fills.ts[trades.fills.count - 1]!] : [];
  const instants = [...curves.flatMap(({ from, to }) => [from, to]), ...fills];
  const span = {
    from: instants.reduce((a, b) => (b < a ? b : a), instants[0] ?? 0n),
    to: instants.reduce((a, b) => (b > a ? b : a), instants[0] ?? 0n),
  };
  return {
    ...{ manifest, curves, window, rolling },
    trades: hasFills ? await readTrades(measured, span) : [],
    busiestDay: hasFills ? await readBusiestDay(measured) : (noTrades ?? "no fills"),
    events: await readEvents(measured),
    symbols: (trades?.instruments.instruments ?? []).map(({ symbol, venues }) => ({ symbol, venues })),
    instruments: trades?.instruments.taken ?? [],
  };
}

type Series = Pick<RunRead, "curves" | "window" | "rolling">;

const noSeries: Series = { curves: [], window: null, rolling: [] };

/** What is read from a run's returns. */
async function readSeries(measured: MeasuredRun): Promise<Series> {
  const curves = await readCurves(measured);
  const returns = Math.max(0, ...curves.map((curve) => curve.returns.length));
  const window = measured.options.window ?? usualWindow(returns);
  const rolling = window === null || returns < window ? [] : await readRolling(measured, window);
  return { curves, window, rolling };
}
