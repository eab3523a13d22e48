import type { Chart, NoChart } from "./chart.ts";
import type { QuantilesData } from "./chart-data.ts";
import { columnBars } from "./drawing/column-bars.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { valueEncoding } from "./drawing/encodings.ts";
import { type Frame, runStroke } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, countText, orDash, percentText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { extentOf, valueAxis } from "./drawing/value-axis.ts";

type Factor = QuantilesData["factors"][number];

const id = "factor-quantiles";
const title = "Return by quantile of the factor";
/** So many factors have a colour of their own. */
const mostFactors = 6;

/** The mean return that follows each quantile of a factor: of one as bars, of several as lines. */
export async function quantilesChart(data: QuantilesData): Promise<Chart | NoChart> {
  const factors = data.factors.filter(({ quantiles }) => quantiles.some(({ mean }) => isKnown(mean)));
  if (factors.length === 0) return { id, title, reason: "no factor with quantiles" };
  const spread = ({ quantiles }: Factor) => {
    const [low, high] = extentOf(quantiles.flatMap(({ mean }) => (isKnown(mean) ? [mean] : [])));
    return high - low;
  };
  const widest = factors.toSorted((a, b) => spread(b) - spread(a)).slice(0, mostFactors);
  const drawn = factors.filter((factor) => widest.includes(factor));
  const horizon = countOf(data.horizon, "bar");
  return await drawChart({
    id,
    title,
    caption: [
      `Mean return over the next ${horizon}, by quantile of the factor, the lowest first.`,
      factors.length > drawn.length
        ? `The ${mostFactors} of ${factors.length} factors whose quantiles differ most.`
        : "",
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Mean return over the next ${horizon} by quantile: ${drawn
      .map(({ factor, quantiles }) => {
        return `${factor} ${quantiles.map(({ mean }) => orDash(mean, percentText)).join(", ")}`;
      })
      .join("; ")}.`,
    numbers: {
      columns: ["Factor", "Quantile", "Mean return", "n"],
      ...firstRows(
        factors.flatMap(({ factor, quantiles }) =>
          quantiles.map(({ quantile, mean, n }) => [
            factor,
            countText(quantile),
            orDash(mean, percentText),
            countText(n),
          ]),
        ),
        "rows",
      ),
    },
    draw: (frame) => (drawn.length === 1 ? drawBars(frame, drawn[0]!) : drawLines(frame, drawn)),
  });
}

function say({ factor }: Factor, quantile: number, mean: number, n: number): string {
  return `${factor}, quantile ${quantile}: ${percentText(mean)}, n ${countText(n)}`;
}

function drawBars(frame: Frame, factor: Factor): Drawing {
  const known = factor.quantiles.flatMap(({ quantile, mean, n }) =>
    isKnown(mean) ? [{ quantile, mean, n }] : [],
  );
  return columnBars(
    frame,
    known.map(({ quantile, mean, n }) => ({
      key: quantile,
      value: mean,
      colour: mean < 0 ? "loss" : "gain",
      text: say(factor, quantile, mean, n),
    })),
    {
      labelExpr: "format(datum.value, 'd')",
      heading: factor.factor,
      axisTitle: "Quantile",
      unit: "percent",
    },
  );
}

function drawLines(frame: Frame, factors: readonly Factor[]): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const lines = factors.map((factor) =>
    factor.quantiles.flatMap(({ quantile, mean, n }) =>
      isKnown(mean) ? [{ quantile, mean, text: say(factor, quantile, mean, n) }] : [],
    ),
  );
  const keys = [...new Set(lines.flat().map(({ quantile }) => quantile))].sort((a, b) => a - b);
  const y = valueAxis([0, ...extentOf(lines.flat().map(({ mean }) => mean))], {
    fontSize,
    unit: "percent",
    ticks: isNarrow ? 4 : 5,
  });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const x = {
    field: "quantile",
    type: "ordinal" as const,
    scale: { domain: keys },
    title: "Quantile",
    axis: { labelAngle: 0, domain: true, domainColor: paint("line") },
  };
  const names = legend(
    factors.map(({ factor }, index) => ({ label: factor, shape: "line", ...runStroke(index) })),
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
          ...lines.flatMap((values, index): Layer[] => {
            const colour = paint(runStroke(index).colour);
            const encoding = { x, y: valueEncoding(y, "mean", frame) };
            return [
              { data: { values }, mark: { type: "line", stroke: colour, strokeWidth: 1.5 }, encoding },
              {
                data: { values },
                mark: { type: "point", aria: true, filled: true, fill: colour, size: 44, opacity: 1 },
                encoding: { ...encoding, description: { field: "text", type: "nominal" } },
              },
            ];
          }),
          ...names.layers,
        ],
      },
    ],
  };
}

function isKnown(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}
