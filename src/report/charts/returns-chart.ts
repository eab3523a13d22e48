import type { Chart, NoChart } from "./chart.ts";
import type { ReturnsData, ReturnsRun } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { positionEncoding, valueEncoding } from "./drawing/encodings.ts";
import type { Frame } from "./drawing/frame.ts";
import { type Histogram, histogram } from "./drawing/histogram.ts";
import type { Layer } from "./drawing/layer.ts";
import { type LegendEntry, legend } from "./drawing/legend.ts";
import { countOf, countText, numberText, percentText } from "./drawing/number-text.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";
import { extentOf, spacedAxis, valueAxis } from "./drawing/value-axis.ts";

const id = "returns";

/**
 * The distribution of returns: bars with the normal curve of the same mean and deviation for one run, outlines for
 * several.
 */
export async function returnsChart(data: ReturnsData): Promise<Chart | NoChart> {
  const title = `Returns of each ${data.period}`;
  const isOne = data.runs.length === 1;
  const runs = data.runs
    .map((run) => ({ ...run, returns: run.returns.filter(Number.isFinite) }))
    .filter(({ returns }) => returns.length > 0);
  if (runs.length === 0) return { id, title, reason: "no returns" };
  const bins = histogram(runs.map(({ returns }) => returns));
  const shown = runs.map((run) => `${run.name}: ${countOf(run.returns.length, "return")}`);
  const sentences = [
    isOne
      ? `${countText(runs[0]!.returns.length)} returns, each of one ${data.period}; the curve is the normal distribution with their mean and deviation.`
      : `Share of each run's returns, each of one ${data.period}.`,
    bins.beyond > 0
      ? `The bars at both ends also contain ${countOf(bins.beyond, "return")} beyond the axis.`
      : "",
    noDataSentence(data.runs, runs),
    data.note ?? "",
  ];
  return await drawChart({
    id,
    title,
    caption: sentences.filter(Boolean).join(" "),
    label: `Histogram of returns from ${percentText(bins.smallest)} to ${percentText(bins.largest)}. ${shown.join("; ")}.`,
    numbers: {
      columns: ["From", "To", ...runs.map((run) => `${runPrefix(run, isOne)}Returns`)],
      rows: bins.edges
        .slice(0, -1)
        .map((edge, bin) => [
          percentText(edge),
          percentText(bins.edges[bin + 1]!),
          ...bins.counts.map((counts) => countText(counts[bin]!)),
        ]),
      note: "",
    },
    draw: (frame) => draw(frame, runs, bins, isOne),
  });
}

function draw(frame: Frame, runs: readonly ReturnsRun[], bins: Histogram, isOne: boolean): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const height = isNarrow ? 180 : 240;
  // counts for one run, shares for several, because their numbers differ
  const sizes = bins.counts.map((counts, run) => {
    return Array.from(counts, (count) => (isOne ? count : count / runs[run]!.returns.length));
  });
  const curve = isOne ? normalCurve(runs[0]!.returns, bins) : [];
  const tallest = Math.max(...sizes.flat(), ...curve.map(({ v }) => v));
  const y = valueAxis([0, tallest], {
    fontSize,
    ticks: isNarrow ? 4 : 5,
    ...(isOne ? { isWhole: true } : { unit: "percent" as const }),
  });
  const [first, last] = [bins.edges[0]!, bins.edges.at(-1)!];
  const x = valueAxis([first, last], { fontSize, unit: "percent", ticks: isNarrow ? 4 : 9, isNice: false });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = Math.max(isNarrow ? 10 : 16, x.labelWidth / 2);
  const width = plotWidth(frame, { left, right });
  const across = positionEncoding(spacedAxis(x, width, fontSize), "from", frame);
  const up = valueEncoding(y, "v", frame);

  const bars: Layer[] = isOne
    ? [
        {
          data: {
            values: Array.from(sizes[0]!, (count, bin) => ({
              from: bins.edges[bin]!,
              to: bins.edges[bin + 1]!,
              v: count,
              text: `${percentText(bins.edges[bin]!)} to ${percentText(bins.edges[bin + 1]!)}: ${countOf(count, "return")}`,
            })).filter(({ v }) => v > 0),
          },
          mark: {
            type: "rect",
            aria: true,
            fill: paint("accent"),
            fillOpacity: 0.85,
            stroke: paint("paper"),
            strokeWidth: 1,
          },
          encoding: {
            x: across,
            x2: { field: "to" },
            y: up,
            y2: { datum: 0 },
            description: { field: "text", type: "nominal" },
          },
        },
        ...(curve.length === 0
          ? []
          : [
              {
                data: { values: curve },
                mark: { type: "line" as const, stroke: paint("ink"), strokeWidth: 1.25, opacity: 0.75 },
                encoding: { x: across, y: up },
              },
            ]),
      ]
    : sizes.map((shares, run): Layer => {
        const { colour, dash } = runLook(runs[run]!, isOne);
        return {
          data: { values: outline(shares, bins) },
          mark: {
            type: "line",
            interpolate: "step-after",
            stroke: paint(colour),
            strokeWidth: 1.5,
            strokeDash: [...dash],
          },
          encoding: { x: across, y: up },
        };
      });

  const lines = isOne ? riskLines(runs[0]!, [first, last]) : [];
  const entries: LegendEntry[] = isOne
    ? [
        { label: "Returns", shape: "square", colour: "accent", opacity: 0.85 },
        ...(curve.length > 0 ? [{ label: "Normal", shape: "line" as const, colour: "ink" as const }] : []),
        ...lines.map(({ label, value, dash }): LegendEntry => {
          return { label: `${label} ${percentText(value)}`, shape: "line", colour: "loss", dash };
        }),
      ]
    : runEntries(runs, isOne, frame, "line");
  const names = legend(entries, frame, width);
  return {
    left,
    right,
    bottom: fontSize + 18,
    panels: [
      {
        height,
        above: names.height,
        layers: [
          ...bars,
          ...lines.map(
            ({ label, value, dash }): Layer => ({
              data: { values: [{ from: value, text: `${label}: ${percentText(value)}` }] },
              mark: { type: "rule", aria: true, stroke: paint("loss"), strokeWidth: 1.5, strokeDash: dash },
              encoding: { x: across, description: { field: "text", type: "nominal" } },
            }),
          ),
          ...names.layers,
        ],
      },
    ],
  };
}

/** The lines that lie within the axis. */
function riskLines({ valueAtRisk }: ReturnsRun, [first, last]: readonly [number, number]) {
  const { level, historical, normal, conditional } = valueAtRisk;
  const share = `${numberText(level * 100, ".3~f")}%`;
  return [
    { label: `VaR ${share}`, value: historical, dash: [] as number[] },
    { label: `VaR ${share}, normal`, value: normal, dash: [5, 3] },
    { label: `CVaR ${share}`, value: conditional, dash: [1, 3] },
  ].filter((line): line is typeof line & { value: number } => {
    return line.value !== null && line.value >= first && line.value <= last;
  });
}

/** How many returns a bin would have if they were normal, with their mean and deviation (ddof 1). */
function normalCurve(returns: Float64Array, { edges }: Histogram): { from: number; v: number }[] {
  const mean = returns.reduce((sum, each) => sum + each, 0) / returns.length;
  const squares = returns.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (returns.length - 1));
  const [low, high] = extentOf(returns);
  if (
    returns.length < 3 ||
    !(deviation > 0) ||
    high - low < 1e-12 * Math.max(Math.abs(low), Math.abs(high))
  ) {
    return [];
  }
  const [first, last] = [edges[0]!, edges.at(-1)!];
  const binWidth = edges[1]! - first;
  const peak = (returns.length * binWidth) / (deviation * Math.sqrt(2 * Math.PI));
  const points = 120;
  return Array.from({ length: points + 1 }, (_, point) => {
    const from = first + ((last - first) * point) / points;
    return { from, v: peak * Math.exp(-0.5 * ((from - mean) / deviation) ** 2) };
  });
}

function outline(shares: readonly number[], { edges }: Histogram): { from: number; v: number }[] {
  return [
    { from: edges[0]!, v: 0 },
    ...shares.map((share, bin) => ({ from: edges[bin]!, v: share })),
    { from: edges.at(-1)!, v: 0 },
  ];
}
