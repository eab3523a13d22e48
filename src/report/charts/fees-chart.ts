import type { Chart, NoChart } from "./chart.ts";
import type { FeesData } from "./chart-data.ts";
import { type BarRow, barRows } from "./drawing/bar-rows.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { amountText } from "./drawing/number-text.ts";

const id = "fees";
const title = "Fees by venue";

/** Fees and rebates of each venue, a panel a currency: what is counted in different things is not added. */
export async function feesChart(data: FeesData): Promise<Chart | NoChart> {
  const groups = data.groups.filter(({ fees, rebates }) => Number.isFinite(fees) && Number.isFinite(rebates));
  if (groups.length === 0) return { id, title, reason: "no fees" };
  const currencies = [...new Set(groups.map(({ currency }) => currency))];
  const rowsOf = (currency: string): BarRow[] =>
    groups
      .filter((group) => group.currency === currency)
      .toSorted((a, b) => b.fees - a.fees || (a.venue < b.venue ? -1 : 1))
      .flatMap(({ venue, fees, rebates }): BarRow[] => {
        const paid: BarRow = {
          label: venue,
          from: 0,
          to: fees,
          colour: "accent",
          value: amountText(fees),
          text: `${venue}: fees of ${amountText(fees)} ${currency}`,
        };
        if (rebates === 0) return [paid];
        const got: BarRow = {
          label: `${venue}, rebates`,
          from: 0,
          to: -rebates,
          colour: "gain",
          value: amountText(-rebates),
          text: `${venue}: rebates of ${amountText(rebates)} ${currency}`,
        };
        return fees === 0 ? [got] : [paid, got];
      });
  return await drawChart({
    id,
    title,
    caption: ["Fees paid; rebates received apart, below zero.", data.note ?? ""].filter(Boolean).join(" "),
    label: `Bars of fees: ${groups
      .slice(0, 12)
      .map(({ venue, currency, fees, rebates }) => {
        return `${venue} ${amountText(fees)} ${currency}, rebates ${amountText(rebates)} ${currency}`;
      })
      .join("; ")}.`,
    numbers: {
      columns: ["Venue", "Currency", "Fees", "Rebates"],
      rows: groups.map(({ venue, currency, fees, rebates }) => [
        venue,
        currency,
        amountText(fees),
        amountText(rebates),
      ]),
      note: "",
    },
    draw: (frame) =>
      barRows(
        frame,
        currencies.map((currency) => ({ heading: currency, rows: rowsOf(currency) })),
        { axisTitle: "", areApart: true },
      ),
  });
}
