import { grouped } from "../../model/text/number-text.ts";
import { candlesChart } from "../charts/candles-chart.ts";
import type { Html } from "../page/html.ts";
import { html } from "../page/html.ts";
import { empty, type PageParts, type PageSection } from "./page-section.ts";

/** The bars of the day with most fills, and the fills among them. */
export const candlesSection: PageSection = {
  id: "busiest-day",
  title: "The busiest day",
  render: async ({ reported: { runs, options }, drawings }: PageParts) => {
    const parts: Html[] = [];
    for (const { name, label, read } of runs) {
      const isOnly = runs.length === 1;
      const { busiestDay } = read;
      if (typeof busiestDay === "string") {
        parts.push(empty(isOnly ? busiestDay : `${label}: ${busiestDay}`));
        continue;
      }
      const { symbol, venue, day, fillsOfDay, bars, fills } = busiestDay;
      const minutes = (ms: number) => (ms % 60_000 === 0 ? `${grouped(ms / 60_000)} min` : `${ms / 1_000} s`);
      const joined =
        bars.intervalMs === bars.ownIntervalMs
          ? `Bars are those of ${venue}`
          : `Bars are put together from ${minutes(bars.ownIntervalMs)} of ${venue}`;
      const shown =
        fills.times.length === fillsOfDay
          ? ""
          : "; of each candle the bought and the sold are one fill, at their average price";
      const chart = await candlesChart({
        ...{ symbol, bars, fills },
        note: `${day} is the session (${options.session}) with most fills of one symbol, ${grouped(fillsOfDay)}. ${joined}${shown}.`,
      });
      parts.push(drawings.add(chart, isOnly ? null : `${label} ${name}`));
    }
    return html`${parts}`;
  },
};
