import { grouped } from "../../model/text/number-text.ts";
import { countText } from "../../model/text/plural.ts";
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
          ? `Bars of ${minutes(bars.intervalMs)} at ${venue}`
          : `Bars of ${minutes(bars.ownIntervalMs)} at ${venue}, put together to ${minutes(bars.intervalMs)}`;
      const shown =
        fills.times.length === fillsOfDay
          ? `all ${countText(fillsOfDay, "fill")} of the day`
          : `${grouped(fillsOfDay)} fills, of each candle the bought and the sold at their average prices`;
      const chart = await candlesChart({
        ...{ symbol, bars, fills },
        note: `${day}, the session (${options.session}) with most fills. ${joined}; ${shown}.`,
      });
      parts.push(drawings.add(chart, isOnly ? null : `${label} ${name}`));
    }
    return html`${parts}`;
  },
};
