import type { Chart, NoChart } from "./chart.ts";
import type { LatencyData, LatencyGroup, OfRun } from "./chart-data.ts";
import { placedGroups, rowTexts } from "./drawing/bar-rows.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { pixels, positionEncoding } from "./drawing/encodings.ts";
import type { Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, countText, durationText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";
import { textWidth, textWithin } from "./drawing/text-width.ts";
import { logAxis, spacedAxis } from "./drawing/value-axis.ts";

type Run = OfRun & { readonly groups: readonly LatencyGroup[] };

const id = "latency";
const title = "Latency";
/** A logarithmic scale has no zero: latencies of zero are drawn at a microsecond. */
const least = 0.001;
/** This many rows are as high as a page. */
const mostRows = 60;

/** How long the gateway took: median, 95th and 99th percentile by order type. */
export async function latencyChart(data: LatencyData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs
    .map((run) => ({ ...run, groups: run.groups.filter(isKnown) }))
    .filter(({ groups }) => groups.length > 0);
  if (runs.length === 0) return { id, title, reason: "no orders with both times" };
  const measures = [...new Set(runs.flatMap(({ groups }) => groups.map(({ measure }) => measure)))];
  const types = [...new Set(runs.flatMap(({ groups }) => groups.map(({ type }) => type)))];
  const drawn = types.slice(0, Math.max(1, Math.floor(mostRows / runs.length / measures.length)));
  return await drawChart({
    id,
    title,
    caption: [
      "On a logarithmic scale: the line, and the number at the right, is the median of the orders, the bar reaches their 95th percentile, and the diamond marks the 99th.",
      drawn.length < types.length ? `The first ${drawn.length} of ${types.length} order types.` : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Quantiles of latency: ${runs.map((run) => `${runPrefix(run, isOne)}${run.groups.slice(0, 8).map(say).join("; ")}`).join("; ")}.`,
    numbers: {
      columns: ["From, to", "Order type", ...(isOne ? [] : ["Run"]), "Orders", "Median", "95%", "99%"],
      ...firstRows(
        runs.flatMap((run) =>
          run.groups.map(({ measure, type, orders, quantiles: { p50, p95, p99 } }) => [
            measure,
            type,
            ...(isOne ? [] : [run.label]),
            countText(orders),
            ...[p50, p95, p99].map(durationText),
          ]),
        ),
        "rows",
      ),
    },
    draw: (frame) => draw(frame, { runs, measures, types: drawn, isOne }),
  });
}

function isKnown({ orders, quantiles }: LatencyGroup): boolean {
  return orders > 0 && Object.values(quantiles).every(Number.isFinite);
}

function say({ measure, type, orders, quantiles: { p50, p95, p99 } }: LatencyGroup): string {
  const [middle, high, top] = [p50, p95, p99].map(durationText);
  return `${type}, ${measure}: median ${middle}, 95th percentile ${high}, 99th ${top}, ${countOf(orders, "order")}`;
}

interface Drawn {
  readonly runs: readonly Run[];
  readonly measures: readonly string[];
  readonly types: readonly string[];
  readonly isOne: boolean;
}

function draw(frame: Frame, { runs, measures, types, isOne }: Drawn): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const labelRoom = isNarrow ? 100 : 200;
  const groups = runs.flatMap((run) => run.groups).filter(({ type }) => types.includes(type));
  const left =
    Math.max(40, ...types.map((type) => textWidth(textWithin(type, fontSize, labelRoom), fontSize))) + 10;
  const right =
    Math.max(...groups.map(({ quantiles }) => textWidth(durationText(quantiles.p50), fontSize))) + 12;
  const width = plotWidth(frame, { left, right });
  const times = groups.flatMap(({ quantiles }) => Object.values(quantiles)).map(drawable);
  const x = spacedAxis(logAxis(times, { fontSize, ticks: isNarrow ? 3 : 7 }), width, fontSize);
  const shown = measures.filter((measure) => groups.some((group) => group.measure === measure));
  return {
    left,
    right,
    bottom: fontSize * 2 + 20,
    between: 6,
    panels: shown.map((measure, panel) => {
      const isLast = panel === shown.length - 1;
      const position = positionEncoding(x, "from", frame, { title: "Milliseconds", hasGrid: true });
      const across = isLast
        ? position
        : { ...position, title: null, axis: { ...position.axis, labels: false } };
      const placed = placedGroups(
        types
          .filter((type) => groups.some((group) => group.type === type && group.measure === measure))
          .map((type) => ({ type, bars: runs })),
        frame,
      );
      const rows = placed.groups.flatMap(({ group: { type, bars }, bars: places }) =>
        bars.map((run, index) => ({
          ...places[index]!,
          run,
          group: run.groups.find((each) => each.type === type && each.measure === measure),
        })),
      );
      const above = legend(
        [
          { label: measure, shape: "none", colour: "ink" },
          ...(panel === 0 ? runEntries(runs, isOne, frame) : []),
        ],
        frame,
        width,
      );
      return {
        height: placed.height,
        above: above.height,
        layers: [
          ...runs.flatMap((run): Layer[] => {
            const colour = paint(runLook(run, isOne).colour);
            const values = rows.flatMap(({ group, run: of, top, middle, bottom }) =>
              group === undefined || of !== run
                ? []
                : [
                    {
                      ...{ top, middle, bottom },
                      from: drawable(group.quantiles.p50),
                      to: drawable(group.quantiles.p95),
                      p99: drawable(group.quantiles.p99),
                      text: `${runPrefix(run, isOne)}${say(group)}`,
                    },
                  ],
            );
            return quantileLayers(values, colour, across);
          }),
          rowTexts(
            placed.groups.map(({ group: { type }, middle }) => ({
              text: textWithin(type, fontSize, labelRoom),
              middle,
            })),
            -10,
            "ink",
            frame,
          ),
          rowTexts(
            rows.map(({ group, middle }) => ({
              text: group === undefined ? "–" : durationText(group.quantiles.p50),
              middle,
            })),
            width + right - 2,
            "muted",
            frame,
          ),
          ...above.layers,
        ],
      };
    }),
  };
}

function quantileLayers(
  values: readonly { readonly from: number; readonly [field: string]: unknown }[],
  colour: string,
  across: ReturnType<typeof positionEncoding>,
): Layer[] {
  if (values.length === 0) return [];
  const data = { values: [...values] };
  const description = { field: "text", type: "nominal" as const };
  const height = { y: pixels("top"), y2: { field: "bottom" } };
  return [
    {
      data,
      mark: { type: "rect", aria: true, fill: colour, fillOpacity: 0.28 },
      encoding: { x: across, x2: { field: "to" }, ...height, description },
    },
    {
      data,
      mark: { type: "rule", aria: true, stroke: colour, strokeWidth: 2.5 },
      encoding: { x: across, ...height, description },
    },
    {
      data,
      mark: { type: "point", aria: true, shape: "diamond", filled: true, fill: colour, size: 46, opacity: 1 },
      encoding: { x: { ...across, field: "p99" }, y: pixels("middle"), description },
    },
  ];
}

function drawable(ms: number): number {
  return Math.max(least, ms);
}
