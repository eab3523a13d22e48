import type { Chart, NoChart } from "./chart.ts";
import type { FeesData, FeesGroup } from "./chart-data.ts";
import { type Bar, type BarGroup, barRows } from "./drawing/bar-rows.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import type { Frame } from "./drawing/frame.ts";
import { amountText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";

const id = "fees";
const title = "Fees by venue";
/** This many bars are as high as a page. */
const mostBars = 60;

type Run = FeesData["runs"][number];

/** Fees and rebates of each venue, a panel per currency, because different currencies are not added. */
export async function feesChart(data: FeesData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs
    .map((run) => ({ ...run, groups: run.groups.filter(isKnown) }))
    .filter(({ groups }) => groups.length > 0);
  if (runs.length === 0) return { id, title, reason: "no fees" };
  const currencies = [...new Set(runs.flatMap(({ groups }) => groups.map(({ currency }) => currency)))];
  const panels = currencies.map((currency) => ({ heading: currency, groups: venueGroups(runs, currency) }));
  const most = Math.max(1, Math.floor(mostBars / runs.length / currencies.length));
  const isCut = panels.some(({ groups }) => groups.length > most);
  return await drawChart({
    id,
    title,
    caption: [
      "Fees paid; rebates received are separate, below zero.",
      isCut ? `The ${most} largest of each currency.` : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Bars of fees: ${runs
      .map((run) => {
        const told = run.groups.slice(0, 12).map(({ venue, currency, fees, rebates }) => {
          return `${venue} ${amountText(fees)} ${currency}, rebates ${amountText(rebates)} ${currency}`;
        });
        return `${runPrefix(run, isOne)}${told.join("; ")}`;
      })
      .join("; ")}.`,
    numbers: {
      columns: ["Venue", ...(isOne ? [] : ["Run"]), "Currency", "Fees", "Rebates"],
      ...firstRows(
        runs.flatMap((run) =>
          run.groups.map(({ venue, currency, fees, rebates }) => [
            venue,
            ...(isOne ? [] : [run.label]),
            currency,
            amountText(fees),
            amountText(rebates),
          ]),
        ),
        "rows",
      ),
    },
    draw: (frame: Frame) =>
      barRows(
        frame,
        panels.map(({ heading, groups }) => ({ heading, groups: groups.slice(0, most) })),
        { axisTitle: "", areApart: true, legend: runEntries(runs, isOne, frame) },
      ),
  });

  function venueGroups(of: readonly Run[], currency: string): BarGroup[] {
    const inCurrency = (run: Run, venue: string) =>
      run.groups.find((group) => group.venue === venue && group.currency === currency);
    const sum = (venue: string) => of.reduce((total, run) => total + (inCurrency(run, venue)?.fees ?? 0), 0);
    const venues = [
      ...new Set(of.flatMap(({ groups }) => groups.filter((group) => group.currency === currency))),
    ].map(({ venue }) => venue);
    return [...new Set(venues)]
      .sort((a, b) => sum(b) - sum(a) || (a < b ? -1 : 1))
      .flatMap((venue): BarGroup[] => {
        const groups = of.map((run) => inCurrency(run, venue));
        const hasFees = groups.some((group) => group !== undefined && group.fees !== 0);
        const hasRebates = groups.some((group) => group !== undefined && group.rebates !== 0);
        const bars = (what: "fees" | "rebates"): Bar[] =>
          of.map((run, index) => {
            const amount = groups[index]?.[what] ?? 0;
            const signed = what === "fees" ? amount : -amount;
            return {
              ...{ from: 0, to: signed },
              colour: isOne ? (what === "fees" ? "accent" : "gain") : runLook(run, isOne).colour,
              value: groups[index] === undefined ? "–" : amountText(signed),
              text: `${runPrefix(run, isOne)}${venue}: ${what} of ${amountText(amount)} ${currency}`,
            };
          });
        return [
          ...(hasFees || !hasRebates ? [{ label: venue, bars: bars("fees") }] : []),
          ...(hasRebates ? [{ label: `${venue}, rebates`, bars: bars("rebates") }] : []),
        ];
      });
  }
}

function isKnown({ fees, rebates }: FeesGroup): boolean {
  return Number.isFinite(fees) && Number.isFinite(rebates);
}
