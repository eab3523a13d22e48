import type { Chart, NoChart } from "./chart.ts";
import type { OfRun, QuantilesData, QuantilesFactor } from "./chart-data.ts";
import { columnBars } from "./drawing/column-bars.ts";
import { type Drawing, drawChart } from "./drawing/draw-chart.ts";
import { valueEncoding } from "./drawing/encodings.ts";
import {
  drawFactorPanels,
  type FactorLine,
  factorMark,
  factorPanels,
  strongestFactors,
} from "./drawing/factor-panels.ts";
import type { Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { countOf, countText, orDash, percentText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { noDataSentence, runPrefix } from "./drawing/run-look.ts";
import { extentOf, valueAxis } from "./drawing/value-axis.ts";

type Run = OfRun & { readonly factors: readonly QuantilesFactor[] };

const id = "factor-quantiles";
const title = "Return by quantile of the factor";

/**
 * The mean return after each quantile of a factor: as bars for one factor, as lines for several; for several runs one
 * plot per factor.
 */
export async function quantilesChart(data: QuantilesData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs
    .map((run) => ({
      ...run,
      factors: run.factors.filter(({ quantiles }) => quantiles.some(({ mean }) => isKnown(mean))),
    }))
    .filter(({ factors }) => factors.length > 0);
  if (runs.length === 0) return { id, title, reason: "no factor with quantiles" };
  const spread = ({ quantiles }: QuantilesFactor) => {
    const [low, high] = extentOf(quantiles.flatMap(({ mean }) => (isKnown(mean) ? [mean] : [])));
    return high - low;
  };
  const { drawn, all } = strongestFactors(runs, spread, isOne);
  const horizon = countOf(data.horizon, "bar");
  return await drawChart({
    id,
    title,
    caption: [
      `Mean return over the next ${horizon}, by quantile of the factor, lowest first.`,
      all > drawn.length ? `The ${drawn.length} of ${all} factors whose quantiles differ most.` : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Mean return over the next ${horizon} by quantile: ${runs
      .flatMap((run) =>
        run.factors.filter(({ factor }) => drawn.includes(factor)).map((factor) => ({ run, factor })),
      )
      .map(({ run, factor: { factor, quantiles } }) => {
        return `${runPrefix(run, isOne)}${factor} ${quantiles.map(({ mean }) => orDash(mean, percentText)).join(", ")}`;
      })
      .join("; ")}.`,
    numbers: {
      columns: ["Factor", ...(isOne ? [] : ["Run"]), "Quantile", "Mean return", "n"],
      ...firstRows(
        runs.flatMap((run) =>
          run.factors.flatMap(({ factor, quantiles }) =>
            quantiles.map(({ quantile, mean, n }) => [
              factor,
              ...(isOne ? [] : [run.label]),
              countText(quantile),
              orDash(mean, percentText),
              countText(n),
            ]),
          ),
        ),
        "rows",
      ),
    },
    draw: (frame) => {
      const [only] = drawn;
      if (isOne && drawn.length === 1) {
        return drawBars(frame, runs[0]!.factors.find(({ factor }) => factor === only)!);
      }
      return drawLines(frame, runs, drawn, isOne);
    },
  });
}

function say({ factor }: QuantilesFactor, quantile: number, mean: number, n: number): string {
  return `${factor}, quantile ${quantile}: ${percentText(mean)}, n ${countText(n)}`;
}

function drawBars(frame: Frame, factor: QuantilesFactor): Drawing {
  const known = factor.quantiles.flatMap(({ quantile, mean, n }) =>
    isKnown(mean) ? [{ quantile, mean, n }] : [],
  );
  return columnBars(
    frame,
    known.map(({ quantile, mean, n }) => ({
      ...{ key: quantile, lane: 1, value: mean },
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

interface Point {
  readonly quantile: number;
  readonly mean: number;
  readonly text: string;
  readonly [field: string]: unknown;
}

function drawLines(frame: Frame, runs: readonly Run[], factors: readonly string[], isOne: boolean): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const pointsOf = (run: Run, factor: QuantilesFactor): Point[] =>
    factor.quantiles.flatMap(({ quantile, mean, n }) =>
      isKnown(mean)
        ? [{ quantile, mean, text: `${runPrefix(run, isOne)}${say(factor, quantile, mean, n)}` }]
        : [],
    );
  const panels = factorPanels(runs, factors, pointsOf, isOne, frame);
  const points = panels.flatMap(({ lines }) => lines.flatMap((line) => line.points));
  const keys = [...new Set(points.map(({ quantile }) => quantile))].sort((a, b) => a - b);
  const y = valueAxis([0, ...extentOf(points.map(({ mean }) => mean))], {
    fontSize,
    unit: "percent",
    ticks: isNarrow || panels.length > 1 ? 4 : 5,
  });
  const layersOf = ({ points: values, look }: FactorLine<Point>, isLast: boolean): Layer[] => {
    const colour = paint(look.colour);
    const x = {
      field: "quantile",
      type: "ordinal" as const,
      scale: { domain: keys },
      title: isLast ? "Quantile" : null,
      axis: { labelAngle: 0, labels: isLast, domain: true, domainColor: paint("line") },
    };
    const encoding = { x, y: valueEncoding(y, "mean", frame) };
    return [
      {
        data: { values },
        mark: { type: "line", stroke: colour, strokeWidth: 1.5, strokeDash: [...look.dash] },
        encoding,
      },
      {
        data: { values },
        mark: factorMark(look, frame),
        encoding: { ...encoding, description: { field: "text", type: "nominal" } },
      },
    ];
  };
  return drawFactorPanels(panels, y, layersOf, frame);
}

function isKnown(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}
