import type { Chart, NoChart } from "./chart.ts";
import type { LatencyData } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { pixels, positionEncoding } from "./drawing/encodings.ts";
import type { Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, countText, durationText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { textWidth, textWithin } from "./drawing/text-width.ts";
import { logAxis, spacedAxis } from "./drawing/value-axis.ts";

type Group = LatencyData["groups"][number];

const id = "latency";
const title = "Latency";
/** A logarithm has no zero: what took no time is drawn here, a microsecond. */
const least = 0.001;

/** How long the gateway took: of each kind of order the median, the 95th and the 99th percentile. */
export async function latencyChart(data: LatencyData): Promise<Chart | NoChart> {
  const groups = data.groups.filter(
    ({ orders, quantiles }) => orders > 0 && Object.values(quantiles).every(Number.isFinite),
  );
  if (groups.length === 0) return { id, title, reason: "no orders with both times" };
  return await drawChart({
    id,
    title,
    caption: [
      "On a logarithmic scale: the line, and the number at the right, is the median of the orders, the bar reaches to their 95th percentile, the diamond is the 99th.",
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Quantiles of latency: ${groups.slice(0, 8).map(say).join("; ")}.`,
    numbers: {
      columns: ["From, to", "Order type", "Orders", "Median", "95%", "99%"],
      ...firstRows(
        groups.map(({ measure, type, orders, quantiles: { p50, p95, p99 } }) => [
          measure,
          type,
          countText(orders),
          ...[p50, p95, p99].map(durationText),
        ]),
        "rows",
      ),
    },
    draw: (frame) => draw(frame, groups),
  });
}

function say({ measure, type, orders, quantiles: { p50, p95, p99 } }: Group): string {
  const [middle, high, top] = [p50, p95, p99].map(durationText);
  return `${type}, ${measure}: median ${middle}, 95th percentile ${high}, 99th ${top}, ${countOf(orders, "order")}`;
}

function draw(frame: Frame, groups: readonly Group[]): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const rowHeight = isNarrow ? 24 : 26;
  const labelRoom = isNarrow ? 100 : 200;
  const left =
    Math.max(40, ...groups.map(({ type }) => textWidth(textWithin(type, fontSize, labelRoom), fontSize))) +
    10;
  const right =
    Math.max(...groups.map(({ quantiles }) => textWidth(durationText(quantiles.p50), fontSize))) + 12;
  const width = plotWidth(frame, { left, right });
  const times = groups.flatMap(({ quantiles }) => Object.values(quantiles)).map(drawable);
  const x = spacedAxis(logAxis(times, { fontSize, ticks: isNarrow ? 3 : 7 }), width, fontSize);
  const measures = [...new Set(groups.map(({ measure }) => measure))];
  const axisHeight = fontSize * 2 + 20;
  return {
    left,
    right,
    bottom: axisHeight,
    between: 6,
    panels: measures.map((measure, panel) => {
      const own = groups.filter((group) => group.measure === measure);
      const isLast = panel === measures.length - 1;
      const position = positionEncoding(x, "from", frame, { title: "Milliseconds", hasGrid: true });
      const across = isLast
        ? position
        : { ...position, title: null, axis: { ...position.axis, labels: false } };
      const rows = own.map((group, row) => ({
        label: textWithin(group.type, fontSize, labelRoom),
        value: durationText(group.quantiles.p50),
        text: say(group),
        from: drawable(group.quantiles.p50),
        to: drawable(group.quantiles.p95),
        median: drawable(group.quantiles.p50),
        p99: drawable(group.quantiles.p99),
        top: row * rowHeight + 7,
        bottom: (row + 1) * rowHeight - 7,
        middle: (row + 0.5) * rowHeight,
      }));
      const description = { field: "text", type: "nominal" as const };
      const words = (field: "label" | "value", at: number, colour: "ink" | "muted"): Layer => ({
        data: { values: rows.map((row) => ({ words: row[field], middle: row.middle })) },
        mark: { type: "text", align: "right", baseline: "middle", fill: paint(colour) },
        encoding: { x: { value: at }, y: pixels("middle"), text: { field: "words", type: "nominal" } },
      });
      const above = legend([{ label: measure, shape: "none", colour: "ink" }], frame, width);
      return {
        height: own.length * rowHeight,
        above: above.height,
        layers: [
          {
            data: { values: rows },
            mark: { type: "rect", aria: true, fill: paint("accent"), fillOpacity: 0.28 },
            encoding: {
              x: across,
              x2: { field: "to" },
              y: pixels("top"),
              y2: { field: "bottom" },
              description,
            },
          },
          {
            data: { values: rows },
            mark: { type: "rule", aria: true, stroke: paint("accent"), strokeWidth: 2.5 },
            encoding: {
              x: { ...across, field: "median" },
              y: pixels("top"),
              y2: { field: "bottom" },
              description,
            },
          },
          {
            data: { values: rows },
            mark: {
              type: "point",
              aria: true,
              shape: "diamond",
              filled: true,
              fill: paint("accent"),
              size: 46,
              opacity: 1,
            },
            encoding: { x: { ...across, field: "p99" }, y: pixels("middle"), description },
          },
          words("label", -10, "ink"),
          words("value", width + right - 2, "muted"),
          ...above.layers,
        ],
      };
    }),
  };
}

function drawable(ms: number): number {
  return Math.max(least, ms);
}
