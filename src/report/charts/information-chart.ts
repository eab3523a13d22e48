import type { Chart, NoChart } from "./chart.ts";
import type { InformationData } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { valueEncoding } from "./drawing/encodings.ts";
import { type Frame, runStroke } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countText, orDash, statisticText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { extentOf, valueAxis } from "./drawing/value-axis.ts";

type Factor = InformationData["factors"][number];

const id = "factor-ic";
const title = "Information coefficient by horizon";
/** So many factors have a colour of their own. */
const mostFactors = 6;

/** The rank correlation of factors with the returns that follow, by how far these reach. */
export async function informationChart(data: InformationData): Promise<Chart | NoChart> {
  const factors = data.factors.filter(({ horizons }) => horizons.some(({ ic }) => isKnown(ic)));
  if (factors.length === 0) return { id, title, reason: "no factor with an information coefficient" };
  const strength = ({ horizons }: Factor) =>
    Math.max(...horizons.map(({ ic }) => (isKnown(ic) ? Math.abs(ic) : 0)));
  const strongest = factors.toSorted((a, b) => strength(b) - strength(a)).slice(0, mostFactors);
  // in the order in which they came
  const drawn = factors.filter((factor) => strongest.includes(factor));
  const left = factors.length - drawn.length;
  return await drawChart({
    id,
    title,
    caption: [
      "Rank correlation with the forward return; the whiskers are two standard errors.",
      left > 0 ? `The ${mostFactors} strongest of ${factors.length} factors.` : "",
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Information coefficient: ${drawn
      .map(({ factor, horizons }) => {
        const values = horizons.map(({ horizon, ic }) => `${orDash(ic, statisticText)} at ${horizon}`);
        return `${factor} ${values.join(", ")}`;
      })
      .join("; ")} bars.`,
    numbers: {
      columns: ["Factor", "Horizon, bars", "IC", "Standard error", "n"],
      ...firstRows(
        factors.flatMap(({ factor, horizons }) =>
          horizons.map(({ horizon, ic, error, n }) => [
            factor,
            countText(horizon),
            orDash(ic, statisticText),
            orDash(error, statisticText),
            countText(n),
          ]),
        ),
        "rows",
      ),
    },
    draw: (frame) => draw(frame, drawn),
  });
}

function draw(frame: Frame, factors: readonly Factor[]): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const horizons = [
    ...new Set(factors.flatMap((factor) => factor.horizons.map(({ horizon }) => horizon))),
  ].sort((a, b) => a - b);
  const points = factors.map(({ factor, horizons: own }, index) => {
    // beside each other, so that whiskers are told apart
    const aside = ((index - (factors.length - 1) / 2) * 0.5) / Math.max(4, factors.length);
    return own
      .filter(({ ic }) => isKnown(ic))
      .toSorted((a, b) => a.horizon - b.horizon)
      .map(({ horizon, ic, error, n }) => ({
        at: horizons.indexOf(horizon) + aside,
        ic: ic!,
        low: ic! - 2 * (isKnown(error) ? error : 0),
        high: ic! + 2 * (isKnown(error) ? error : 0),
        text: `${factor}, ${horizon} bars: IC ${statisticText(ic!)}${isKnown(error) ? ` ± ${statisticText(2 * error)}` : ""}, n ${countText(n)}`,
      }));
  });
  const y = valueAxis([0, ...extentOf(points.flat().flatMap(({ low, high }) => [low, high]))], {
    fontSize,
    ticks: isNarrow ? 4 : 5,
  });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const x = {
    field: "at",
    type: "quantitative" as const,
    scale: { domain: [-0.5, horizons.length - 0.5], nice: false, zero: false },
    title: "Horizon, bars",
    axis: {
      values: horizons.map((_, index) => index),
      labelExpr: `format([${horizons.join(",")}][datum.value], ',d')`,
      domain: true,
      domainColor: paint("line"),
    },
  };
  const names = legend(
    factors.length === 1
      ? [{ label: factors[0]!.factor, shape: "none", colour: "ink" }]
      : factors.map(({ factor }, index) => ({
          label: factor,
          shape: "line",
          ...strokeOf(index, factors.length),
        })),
    frame,
    width,
  );
  return {
    left,
    right,
    bottom: fontSize * 2 + 24,
    panels: [
      {
        height: isNarrow ? 160 : 220,
        above: names.height,
        layers: [
          ...points.flatMap((values, index): Layer[] => {
            const colour = paint(strokeOf(index, factors.length).colour);
            const description = { field: "text", type: "nominal" as const };
            return [
              {
                data: { values },
                mark: { type: "rule", stroke: colour, strokeWidth: 1.25, opacity: 0.7 },
                encoding: { x, y: valueEncoding(y, "low", frame), y2: { field: "high" } },
              },
              {
                data: { values },
                mark: { type: "line", stroke: colour, strokeWidth: 1.25 },
                encoding: { x, y: valueEncoding(y, "ic", frame) },
              },
              {
                data: { values },
                mark: { type: "point", aria: true, filled: true, fill: colour, size: 44, opacity: 1 },
                encoding: { x, y: valueEncoding(y, "ic", frame), description },
              },
            ];
          }),
          ...names.layers,
        ],
      },
    ],
  };
}

function strokeOf(index: number, count: number): ReturnType<typeof runStroke> {
  return count === 1 ? { colour: "accent", dash: [] } : runStroke(index);
}

function isKnown(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}
