import type { Chart, NoChart } from "./chart.ts";
import type { InformationData, InformationFactor, OfRun } from "./chart-data.ts";
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
import { countOf, countText, orDash, statisticText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { noDataSentence, runPrefix } from "./drawing/run-look.ts";
import { extentOf, valueAxis } from "./drawing/value-axis.ts";

type Run = OfRun & { readonly factors: readonly InformationFactor[] };

const id = "factor-ic";
const title = "Information coefficient by horizon";

/** The rank correlation of factors with later returns, by horizon; for several runs one plot per factor. */
export async function informationChart(data: InformationData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs
    .map((run) => ({
      ...run,
      factors: run.factors.filter(({ horizons }) => horizons.some(({ ic }) => isKnown(ic))),
    }))
    .filter(({ factors }) => factors.length > 0);
  if (runs.length === 0) return { id, title, reason: "no factor with an information coefficient" };
  const strength = ({ horizons }: InformationFactor) =>
    Math.max(...horizons.map(({ ic }) => (isKnown(ic) ? Math.abs(ic) : 0)));
  const { drawn, all } = strongestFactors(runs, strength, isOne);
  return await drawChart({
    id,
    title,
    caption: [
      "Rank correlation with the forward return; the whiskers are two standard errors.",
      all > drawn.length ? `The ${drawn.length} strongest of ${all} factors.` : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Information coefficient: ${runs
      .flatMap((run) =>
        run.factors
          .filter(({ factor }) => drawn.includes(factor))
          .map(({ factor, horizons }) => {
            const values = horizons.map(({ horizon, ic }) => `${orDash(ic, statisticText)} at ${horizon}`);
            return `${runPrefix(run, isOne)}${factor} ${values.join(", ")}`;
          }),
      )
      .join("; ")} bars.`,
    numbers: {
      columns: ["Factor", ...(isOne ? [] : ["Run"]), "Horizon, bars", "IC", "Standard error", "n"],
      ...firstRows(
        runs.flatMap((run) =>
          run.factors.flatMap(({ factor, horizons }) =>
            horizons.map(({ horizon, ic, error, n }) => [
              factor,
              ...(isOne ? [] : [run.label]),
              countText(horizon),
              orDash(ic, statisticText),
              orDash(error, statisticText),
              countText(n),
            ]),
          ),
        ),
        "rows",
      ),
    },
    draw: (frame) => draw(frame, runs, drawn, isOne),
  });
}

interface Point {
  /** The place of its horizon, moved a little so that whiskers do not overlap. */
  readonly at: number;
  readonly ic: number;
  readonly low: number;
  readonly high: number;
  readonly text: string;
  readonly [field: string]: unknown;
}

function draw(frame: Frame, runs: readonly Run[], factors: readonly string[], isOne: boolean): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const drawn = runs.flatMap((run) => run.factors).filter(({ factor }) => factors.includes(factor));
  const horizons = [
    ...new Set(drawn.flatMap((factor) => factor.horizons.map(({ horizon }) => horizon))),
  ].sort((a, b) => a - b);
  const pointsOf = (
    run: Run,
    { factor, horizons: own }: InformationFactor,
    place: number,
    places: number,
  ) => {
    const aside = ((place - (places - 1) / 2) * 0.5) / Math.max(4, places);
    return own
      .filter(({ ic }) => isKnown(ic))
      .toSorted((a, b) => a.horizon - b.horizon)
      .map(({ horizon, ic, error, n }): Point => {
        const reach = isKnown(error) ? 2 * error : 0;
        return {
          at: horizons.indexOf(horizon) + aside,
          ...{ ic: ic!, low: ic! - reach, high: ic! + reach },
          text: `${runPrefix(run, isOne)}${factor}, ${countOf(horizon, "bar")}: IC ${statisticText(ic!)}${isKnown(error) ? ` ± ${statisticText(2 * error)}` : ""}, n ${countText(n)}`,
        };
      });
  };
  const panels = factorPanels(runs, factors, pointsOf, isOne, frame);
  const points = panels.flatMap(({ lines }) => lines.flatMap((line) => line.points));
  const y = valueAxis([0, ...extentOf(points.flatMap(({ low, high }) => [low, high]))], {
    fontSize,
    ticks: isNarrow || panels.length > 1 ? 4 : 5,
  });
  const layersOf = ({ points: values, look }: FactorLine<Point>, isLast: boolean): Layer[] => {
    const colour = paint(look.colour);
    const x = {
      field: "at",
      type: "quantitative" as const,
      scale: { domain: [-0.5, horizons.length - 0.5], nice: false, zero: false },
      title: isLast ? "Horizon, bars" : null,
      axis: {
        values: horizons.map((_, index) => index),
        labelExpr: `format([${horizons.join(",")}][datum.value], ',d')`,
        labels: isLast,
        domain: true,
        domainColor: paint("line"),
      },
    };
    return [
      {
        data: { values },
        mark: { type: "rule", stroke: colour, strokeWidth: 1.25, opacity: 0.7 },
        encoding: { x, y: valueEncoding(y, "low", frame), y2: { field: "high" } },
      },
      {
        data: { values },
        mark: { type: "line", stroke: colour, strokeWidth: 1.25, strokeDash: [...look.dash] },
        encoding: { x, y: valueEncoding(y, "ic", frame) },
      },
      {
        data: { values },
        mark: factorMark(look, frame),
        encoding: { x, y: valueEncoding(y, "ic", frame), description: { field: "text", type: "nominal" } },
      },
    ];
  };
  return drawFactorPanels(panels, y, layersOf, frame);
}

function isKnown(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}
