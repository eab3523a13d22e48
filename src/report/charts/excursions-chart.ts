import type { Chart, NoChart } from "./chart.ts";
import type { ExcursionsData } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { pixels, positionEncoding, valueEncoding } from "./drawing/encodings.ts";
import type { Colour, Frame } from "./drawing/frame.ts";
import { innerExtent } from "./drawing/inner-extent.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { amountText, countOf, countText, numberText } from "./drawing/number-text.ts";
import { type ScatterCell, scatterCells } from "./drawing/scatter-cells.ts";
import { textWithin } from "./drawing/text-width.ts";
import { extentOf, spacedAxis, type ValueAxis, valueAxis } from "./drawing/value-axis.ts";

const id = "excursions";
const title = "Net P&L against excursions";
/** More trades than these are counted in cells: each is drawn twice. */
const mostSingle = 1000;

/** What trades made in the end against how far they had gone wrong before (MAE), and how far right (MFE). */
export async function excursionsChart(data: ExcursionsData): Promise<Chart | NoChart> {
  const { currency, grouping } = data;
  const known = Array.from(data.net.keys()).filter((index) =>
    [data.net, data.mae, data.mfe].every((values) => Number.isFinite(values[index])),
  );
  if (known.length === 0) return { id, title, reason: "no closed trades with excursions" };
  const [net, mae, mfe] = [data.net, data.mae, data.mfe].map((values) =>
    Float64Array.from(known, (index) => values[index]!),
  ) as [Float64Array, Float64Array, Float64Array];
  const trades: Trades = { net, mae, mfe, currency, isBinned: known.length > mostSingle };
  const left = data.net.length - known.length;
  const beyond = beyondAxes(trades);
  return await drawChart({
    id,
    title,
    caption: [
      `${countOf(known.length, "trade")} (${grouping}), in ${currency}, against the maximum adverse excursion (MAE) and the maximum favourable one (MFE).`,
      trades.isBinned ? "Counted in cells, darker is more; a trade alone in its cell is a dot." : "",
      beyond > 0 ? `${countOf(beyond, "trade")} beyond the axes, drawn at their edge.` : "",
      left > 0 ? `${countOf(left, "trade")} without excursions left out.` : "",
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Scatter of ${countOf(known.length, "trade")}: net P&L from ${amountText(extentOf(net)[0])} to ${amountText(extentOf(net)[1])} ${currency}, deepest MAE ${amountText(extentOf(mae)[0])}, highest MFE ${amountText(extentOf(mfe)[1])}.`,
    numbers: {
      columns: [`MAE, ${currency}`, "Trades", "Winners", `Net P&L, ${currency}`],
      rows: tenths(trades),
      note: known.length > 10 ? "Trades in tenths, by their MAE." : "",
    },
    draw: (frame) => draw(frame, trades),
  });
}

interface Trades {
  readonly net: Float64Array;
  readonly mae: Float64Array;
  readonly mfe: Float64Array;
  readonly currency: string;
  readonly isBinned: boolean;
}

function draw(frame: Frame, trades: Trades): Drawing {
  const { fontSize, isNarrow } = frame;
  const { currency } = trades;
  const ticks = isNarrow ? 4 : 6;
  const y = valueAxis([0, ...innerExtent(trades.net)], { fontSize, ticks });
  const adverse = valueAxis([0, ...innerExtent(trades.mae)], { fontSize, ticks: isNarrow ? 3 : 5 });
  const favourable = valueAxis([0, ...innerExtent(trades.mfe)], { fontSize, ticks: isNarrow ? 3 : 5 });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = Math.max(16, Math.ceil(favourable.labelWidth / 2) + 2);
  const between = isNarrow ? fontSize * 2 + 26 : 44;
  const width = plotWidth(frame, { left, right, between: isNarrow ? 0 : between }, isNarrow ? 1 : 2);
  const height = isNarrow ? 170 : 300;
  const panel = (x: ValueAxis, values: Float64Array, name: string, isFirst: boolean) => {
    const above = legend(
      isFirst
        ? [
            { label: `Net P&L, ${currency}`, shape: "none", colour: "ink" },
            { label: "Gain", shape: "circle", colour: "gain" },
            { label: "Loss", shape: "diamond", colour: "loss" },
          ]
        : [],
      frame,
      width,
    );
    const across = positionEncoding(spacedAxis(x, width, fontSize), "x", frame, {
      title: textWithin(`${name}, ${currency}`, fontSize, width),
    });
    const up = valueEncoding(y, "y", frame);
    // beside the first, the same axis needs no labels again
    const aside = isFirst || isNarrow ? up : { ...up, axis: { ...up.axis, labels: false } };
    return {
      height,
      above: above.height,
      layers: [
        ...marks(trades, values, name, { x, y }, { across, up: aside }, { width, height }, frame),
        ...above.layers,
      ],
    };
  };
  return {
    left,
    right,
    bottom: fontSize * 2 + 26,
    between,
    isSideBySide: !isNarrow,
    panels: [panel(adverse, trades.mae, "MAE", true), panel(favourable, trades.mfe, "MFE", false)],
  };
}

function marks(
  { net, isBinned }: Trades,
  values: Float64Array,
  name: string,
  axes: { readonly x: ValueAxis; readonly y: ValueAxis },
  encoding: { across: ReturnType<typeof positionEncoding>; up: ReturnType<typeof valueEncoding> },
  size: { readonly width: number; readonly height: number },
  frame: Frame,
): Layer[] {
  const { paint, isNarrow } = frame;
  const cells = isBinned
    ? scatterCells(values, net, {
        x: axes.x.domain,
        y: axes.y.domain,
        columns: isNarrow ? 28 : 40,
        rows: isNarrow ? 18 : 28,
      })
    : { crowded: [], single: net.keys() };
  const most = Math.max(1, ...cells.crowded.map(({ count }) => count));
  const single = Array.from(cells.single, (index) => ({
    x: within(values[index]!, axes.x.domain),
    y: within(net[index]!, axes.y.domain),
    text: `Net ${amountText(net[index]!)}, ${name} ${amountText(values[index]!)}`,
    colour: colourOf(net[index]!),
  }));
  const [left, right] = axes.x.domain;
  const [bottom, top] = axes.y.domain;
  const cellLayers = (["gain", "loss"] as const).map(
    (colour): Layer => ({
      data: {
        values: cells.crowded
          .filter(({ y }) => (colour === "gain") === y[0] >= 0)
          .map((cell) => ({
            left: ((cell.x[0] - left) / (right - left)) * size.width,
            right: ((cell.x[1] - left) / (right - left)) * size.width,
            top: (1 - (cell.y[1] - bottom) / (top - bottom)) * size.height,
            bottom: (1 - (cell.y[0] - bottom) / (top - bottom)) * size.height,
            opacity: darkness(cell, most),
            text: `${countOf(cell.count, "trade")}: net ${amountText(cell.y[0])} to ${amountText(cell.y[1])}, ${name} ${amountText(cell.x[0])} to ${amountText(cell.x[1])}`,
          })),
      },
      mark: { type: "rect", aria: true, fill: paint(colour) },
      encoding: {
        x: pixels("left"),
        x2: { field: "right" },
        y: pixels("top"),
        y2: { field: "bottom" },
        fillOpacity: { field: "opacity", type: "quantitative", scale: null, legend: null },
        description: { field: "text", type: "nominal" },
      },
    }),
  );
  return [
    ...(isBinned ? cellLayers : []),
    ...(["gain", "loss"] as const).map(
      (colour): Layer => ({
        data: { values: single.filter((each) => each.colour === colour) },
        mark: {
          type: "point",
          aria: true,
          shape: colour === "gain" ? "circle" : "diamond",
          filled: true,
          fill: paint(colour),
          fillOpacity: isBinned ? 0.8 : 0.55,
          size: isBinned ? 16 : 30,
          opacity: 1,
        },
        encoding: {
          x: encoding.across,
          y: encoding.up,
          description: { field: "text", type: "nominal" },
        },
      }),
    ),
  ];
}

function colourOf(net: number): Colour {
  return net < 0 ? "loss" : "gain";
}

/** Six steps, by the logarithm of how many. */
function darkness({ count }: ScatterCell, most: number): number {
  const step = Math.min(5, Math.floor((Math.log(count) / Math.log(Math.max(2, most))) * 6));
  return [0.16, 0.28, 0.42, 0.58, 0.76, 0.95][step]!;
}

function within(value: number, [low, high]: readonly [number, number]): number {
  return Math.min(high, Math.max(low, value));
}

function beyondAxes({ net, mae, mfe }: Trades): number {
  const extents = [net, mae, mfe].map((values) => [values, ...innerExtent(values)] as const);
  return net.reduce((count, _, index) => {
    const isBeyond = extents.some(([values, low, high]) => values[index]! < low || values[index]! > high);
    return count + (isBeyond ? 1 : 0);
  }, 0);
}

/** Trades in ten parts as large as each other, the deepest MAE first. */
function tenths({ net, mae }: Trades): string[][] {
  const order = Array.from(mae.keys()).sort((a, b) => mae[a]! - mae[b]! || a - b);
  const parts = Math.min(10, order.length);
  return Array.from({ length: parts }, (_, part) => {
    const own = order.slice(
      Math.floor((part * order.length) / parts),
      Math.floor(((part + 1) * order.length) / parts),
    );
    const winners = own.filter((index) => net[index]! > 0).length;
    const [first, last] = [mae[own[0]!]!, mae[own.at(-1)!]!];
    return [
      first === last ? amountText(first) : `${amountText(first)} to ${amountText(last)}`,
      countText(own.length),
      `${countText(winners)} (${numberText(winners / own.length, ".0%")})`,
      amountText(own.reduce((sum, index) => sum + net[index]!, 0)),
    ];
  });
}
