import type { Chart, NoChart } from "./chart.ts";
import type { SlippageData } from "./chart-data.ts";
import { type BarRow, barRows } from "./drawing/bar-rows.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { countOf, countText, numberText, orDash } from "./drawing/number-text.ts";

type Group = SlippageData["groups"][number];

const id = "slippage";
const title = "Slippage by order type";

/** What fills cost against each reference, by type of order: types of order cancel each other where they are added. */
export async function slippageChart(data: SlippageData): Promise<Chart | NoChart> {
  const known = data.groups.filter(isKnown);
  if (known.length === 0) return { id, title, reason: "no fill with a reference price" };
  const references = [...new Set(known.map(({ reference }) => reference))];
  const say = ({ type, reference, basisPoints, fills }: Group & { basisPoints: number }) =>
    `${type} against ${reference}: ${pointsText(basisPoints)}, ${countOf(fills, "fill")}`;
  return await drawChart({
    id,
    title,
    caption: [
      "Basis points of the reference price, weighted by notional; above zero is a cost, below zero a gain.",
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Bars of slippage: ${known.slice(0, 12).map(say).join("; ")}.`,
    numbers: {
      columns: ["Reference", "Order type", "Slippage", "Fills"],
      rows: data.groups.map(({ reference, type, basisPoints, fills }) => [
        reference,
        type,
        orDash(basisPoints, pointsText),
        countText(fills),
      ]),
      note: "",
    },
    draw: (frame) =>
      barRows(
        frame,
        references.map((reference) => ({
          heading: `Against ${reference}`,
          rows: known
            .filter((group) => group.reference === reference)
            .map(
              (group): BarRow => ({
                label: group.type,
                from: 0,
                to: group.basisPoints,
                colour: group.basisPoints > 0 ? "loss" : "gain",
                value: frame.isNarrow
                  ? pointsText(group.basisPoints)
                  : `${pointsText(group.basisPoints)} · ${countOf(group.fills, "fill")}`,
                text: say(group),
              }),
            ),
        })),
        { axisTitle: "Basis points" },
      ),
  });
}

function isKnown(group: Group): group is Group & { basisPoints: number } {
  return group.basisPoints !== null && Number.isFinite(group.basisPoints);
}

function pointsText(basisPoints: number): string {
  const size = Math.abs(basisPoints);
  const specifier = size >= 1e9 || (size > 0 && size < 1e-6) ? "+.2~e" : size < 0.1 ? "+.2~r" : "+,.2f";
  return `${numberText(basisPoints, basisPoints === 0 ? ".2f" : specifier)} bp`;
}
