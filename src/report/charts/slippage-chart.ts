import type { Chart, NoChart } from "./chart.ts";
import type { OfRun, SlippageData, SlippageGroup } from "./chart-data.ts";
import { barRows } from "./drawing/bar-rows.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { countOf, countText, numberText, orDash } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";

const id = "slippage";
const title = "Slippage by order type";
/** This many bars are as high as a page. */
const mostBars = 60;

/** The cost of fills against each reference, by order type, because types would cancel each other in a sum. */
export async function slippageChart(data: SlippageData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs.flatMap(({ groups, ...run }) => {
    const known = groups.filter(isKnown);
    return known.length === 0 ? [] : [{ ...run, known }];
  });
  if (runs.length === 0) return { id, title, reason: "no fill with a reference price" };
  const all = runs.flatMap(({ known }) => known);
  const references = [...new Set(all.map(({ reference }) => reference))];
  const types = [...new Set(all.map(({ type }) => type))];
  const drawn = types.slice(0, Math.max(1, Math.floor(mostBars / runs.length / references.length)));
  return await drawChart({
    id,
    title,
    caption: [
      "Basis points of the reference price, weighted by notional; above zero is a cost, below zero a gain.",
      drawn.length < types.length ? `The first ${drawn.length} of ${types.length} order types.` : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Bars of slippage: ${runs.map((run) => `${runPrefix(run, isOne)}${run.known.slice(0, 12).map(say).join("; ")}`).join("; ")}.`,
    numbers: {
      columns: ["Reference", "Order type", ...(isOne ? [] : ["Run"]), "Slippage", "Fills"],
      ...firstRows(
        data.runs.flatMap(({ groups, ...run }) =>
          groups.map(({ reference, type, basisPoints, fills }) => [
            reference,
            type,
            ...(isOne ? [] : [run.label]),
            orDash(basisPoints, pointsText),
            countText(fills),
          ]),
        ),
        "rows",
      ),
    },
    draw: (frame) => {
      const bar = (run: OfRun & { readonly known: readonly Known[] }, type: string, reference: string) => {
        const group = run.known.find((each) => each.type === type && each.reference === reference);
        const colour = isOne ? sideOf(group) : runLook(run, isOne).colour;
        if (group === undefined) {
          return { from: 0, to: 0, colour, value: "–", text: `${runPrefix(run, isOne)}no ${type}` };
        }
        const points = pointsText(group.basisPoints);
        return {
          ...{ from: 0, to: group.basisPoints, colour },
          value: frame.isNarrow ? points : `${points} · ${countOf(group.fills, "fill")}`,
          text: `${runPrefix(run, isOne)}${say(group)}`,
        };
      };
      const panels = references.map((reference) => ({
        heading: `Against ${reference}`,
        groups: drawn
          .filter((type) => all.some((group) => group.type === type && group.reference === reference))
          .map((type) => ({ label: type, bars: runs.map((run) => bar(run, type, reference)) })),
      }));
      return barRows(
        frame,
        panels.filter(({ groups }) => groups.length > 0),
        { axisTitle: "Basis points", legend: runEntries(runs, isOne, frame) },
      );
    },
  });
}

type Known = SlippageGroup & { readonly basisPoints: number };

function isKnown(group: SlippageGroup): group is Known {
  return group.basisPoints !== null && Number.isFinite(group.basisPoints);
}

function sideOf(group: Known | undefined): "loss" | "gain" {
  return group !== undefined && group.basisPoints > 0 ? "loss" : "gain";
}

function say({ type, reference, basisPoints, fills }: Known): string {
  return `${type} against ${reference}: ${pointsText(basisPoints)}, ${countOf(fills, "fill")}`;
}

function pointsText(basisPoints: number): string {
  const size = Math.abs(basisPoints);
  const specifier = size >= 1e9 || (size > 0 && size < 1e-6) ? "+.2~e" : size < 0.1 ? "+.2~r" : "+,.2f";
  return `${numberText(basisPoints, basisPoints === 0 ? ".2f" : specifier)} bp`;
}
