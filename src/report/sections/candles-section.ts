import { grouped } from "../../model/text/number-text.ts";
import { candlesChart } from "../charts/candles-chart.ts";
import { html } from "../page/html.ts";
import type { BusiestDay } from "../read/read-candles.ts";
import { chartRun, empty, notes, type PageParts, type PageSection } from "./page-section.ts";

/** The bars of the day with the most fills, and the fills among them. */
export const candlesSection: PageSection = {
  id: "busiest-day",
  title: "The busiest day",
  render: async ({ reported: { runs, options }, drawings }: PageParts) => {
    const isOnly = runs.length === 1;
    const known = runs.flatMap((run) => {
      const { busiestDay: day } = run.read;
      return typeof day === "string" ? [] : [{ run, day }];
    });
    const reasons = runs.flatMap(({ label, read: { busiestDay } }) =>
      typeof busiestDay === "string" ? [isOnly ? busiestDay : `${label} ${busiestDay}`] : [],
    );
    if (known.length === 0) return empty(reasons[0] ?? "no fills");
    const chart = await candlesChart({
      runs: runs.map((run) => {
        const { busiestDay: day } = run.read;
        return { ...chartRun(run), ...(typeof day === "string" ? noDay : day) };
      }),
      note: known
        .map(({ run, day }) => `${isOnly ? "" : `${run.label}: `}${noteOf(day, options.session)}`)
        .join(" "),
    });
    return html`${drawings.add(chart)}${notes(isOnly ? [] : reasons)}`;
  },
};

const none = new Float64Array();
const noDay = {
  symbol: "",
  bars: { times: none, intervalMs: 1, open: none, high: none, low: none, close: none },
  fills: { times: none, prices: none, quantities: none, isBuy: new Uint8Array() },
};

function noteOf({ day, venue, fillsOfDay, bars, fills }: BusiestDay, session: string): string {
  const minutes = (ms: number) => (ms % 60_000 === 0 ? `${grouped(ms / 60_000)} min` : `${ms / 1_000} s`);
  const joined =
    bars.intervalMs === bars.ownIntervalMs
      ? `Bars are those of ${venue}`
      : `Bars are aggregated from ${minutes(bars.ownIntervalMs)} of ${venue}`;
  const shown =
    fills.times.length === fillsOfDay
      ? ""
      : "; all buys within a candle are one fill at their average price, and so are all sells";
  return `${day} is the session (${session}) with the most fills of one symbol, ${grouped(fillsOfDay)}. ${joined}${shown}.`;
}
