import type { Chart, NoChart } from "./chart.ts";
import type { ExcursionsData } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { pixels, positionEncoding, valueEncoding } from "./drawing/encodings.ts";
import type { Colour, Frame } from "./drawing/frame.ts";
import { innerExtent } from "./drawing/inner-extent.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { amountText, countOf, countText, numberText } from "./drawing/number-text.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";
import { type ScatterCell, type ScatterCells, scatterCells } from "./drawing/scatter-cells.ts";
import { textWithin } from "./drawing/text-width.ts";
import { extentOf, spacedAxis, type ValueAxis, valueAxis } from "./drawing/value-axis.ts";

const id = "excursions";
const title = "Net P&L against excursions";
/** More trades than these are counted in cells: each is drawn twice. */
const mostSingle = 1000;

/** Most marks of one of the two plots, for all runs. */
const mostMarks = 1200;

/** The results of trades against their adverse (MAE) and favourable (MFE) excursions. */
export async function excursionsChart(data: ExcursionsData): Promise<Chart | NoChart> {
  const { currency, grouping } = data;
  const isOne = data.runs.length === 1;
  const runs = data.runs.map(knownOf).filter(({ net }) => net.length > 0);
  if (runs.length === 0) return { id, title, reason: "no closed trades with excursions" };
  const count = runs.reduce((sum, { net }) => sum + net.length, 0);
  const trades: Trades = { runs, isOne, currency, isBinned: count > mostSingle };
  const left = data.runs.reduce((sum, { net }) => sum + net.length, 0) - count;
  const beyond = beyondAxes(trades);
  return await drawChart({
    id,
    title,
    caption: [
      `${countOf(count, "trade")} (${grouping}), in ${currency}, against the maximum adverse excursion (MAE) and the maximum favourable one (MFE).`,
      trades.isBinned ? binned(isOne) : "",
      beyond > 0 ? `${countOf(beyond, "trade")} beyond the axes, drawn at their edge.` : "",
      left > 0 ? `${countOf(left, "trade")} without excursions left out.` : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Scatter of trades: ${runs.map((run) => `${runPrefix(run, isOne)}${countOf(run.net.length, "trade")}, net P&L from ${amountText(extentOf(run.net)[0])} to ${amountText(extentOf(run.net)[1])} ${currency}, deepest MAE ${amountText(extentOf(run.mae)[0])}, highest MFE ${amountText(extentOf(run.mfe)[1])}`).join("; ")}.`,
    numbers: {
      columns: [...(isOne ? [] : ["Run"]), `MAE, ${currency}`, "Trades", "Winners", `Net P&L, ${currency}`],
      rows: runs.flatMap((run) => tenths(run).map((row) => (isOne ? row : [run.label, ...row]))),
      note: runs.some(({ net }) => net.length > 10) ? "Trades in tenths, by their MAE." : "",
    },
    draw: (frame) => draw(frame, trades),
  });
}

function binned(isOne: boolean): string {
  return isOne
    ? "Counted in cells: darker means more trades; a single trade in a cell is a dot."
    : "Counted in cells, separately for each run: a larger mark means more trades.";
}

type Run = ExcursionsData["runs"][number];

/** The trades for which all three values are known. */
function knownOf({ net, mae, mfe, ...run }: Run): Run {
  const known = Array.from(net.keys()).filter((index) =>
    [net, mae, mfe].every((values) => Number.isFinite(values[index])),
  );
  const of = (values: Float64Array) => Float64Array.from(known, (index) => values[index]!);
  return { ...run, net: of(net), mae: of(mae), mfe: of(mfe) };
}

interface Trades {
  readonly runs: readonly Run[];
  readonly isOne: boolean;
  readonly currency: string;
  readonly isBinned: boolean;
}

/** One of their numbers, for all runs together. */
function joined({ runs }: Trades, of: "net" | "mae" | "mfe"): Float64Array {
  const all = new Float64Array(runs.reduce((sum, run) => sum + run[of].length, 0));
  let place = 0;
  for (const run of runs) {
    all.set(run[of], place);
    place += run[of].length;
  }
  return all;
}

function draw(frame: Frame, trades: Trades): Drawing {
  const { fontSize, isNarrow } = frame;
  const { currency } = trades;
  const ticks = isNarrow ? 4 : 6;
  const y = valueAxis([0, ...innerExtent(joined(trades, "net"))], { fontSize, ticks });
  const adverse = valueAxis([0, ...innerExtent(joined(trades, "mae"))], {
    fontSize,
    ticks: isNarrow ? 3 : 5,
  });
  const favourable = valueAxis([0, ...innerExtent(joined(trades, "mfe"))], {
    fontSize,
    ticks: isNarrow ? 3 : 5,
  });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = Math.max(16, Math.ceil(favourable.labelWidth / 2) + 2);
  const between = isNarrow ? fontSize * 2 + 26 : 44;
  const width = plotWidth(frame, { left, right, between: isNarrow ? 0 : between }, isNarrow ? 1 : 2);
  const height = isNarrow ? 170 : 300;
  const panel = (x: ValueAxis, of: "mae" | "mfe", isFirst: boolean) => {
    const name = of.toUpperCase();
    const above = legend(
      isFirst
        ? [
            { label: `Net P&L, ${currency}`, shape: "none", colour: "ink" },
            ...(trades.isOne
              ? [
                  { label: "Gain", shape: "circle" as const, colour: "gain" as const },
                  { label: "Loss", shape: "diamond" as const, colour: "loss" as const },
                ]
              : runEntries(trades.runs, trades.isOne, frame, "own")),
          ]
        : [],
      frame,
      width,
    );
    const across = positionEncoding(spacedAxis(x, width, fontSize), "x", frame, {
      title: textWithin(`${name}, ${currency}`, fontSize, width),
    });
    const up = valueEncoding(y, "y", frame);
    // the same axis beside the first needs no labels again
    const aside = isFirst || isNarrow ? up : { ...up, axis: { ...up.axis, labels: false } };
    return {
      height,
      above: above.height,
      layers: [
        ...(trades.isOne ? marksOfOne : marksOfSeveral)(trades, of, { x, y }, { across, up: aside }, frame, {
          width,
          height,
        }),
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
    panels: [panel(adverse, "mae", true), panel(favourable, "mfe", false)],
  };
}

interface Axes {
  readonly x: ValueAxis;
  readonly y: ValueAxis;
}

interface Encodings {
  readonly across: ReturnType<typeof positionEncoding>;
  readonly up: ReturnType<typeof valueEncoding>;
}

/** For one run, gains and losses have their own colours. */
function marksOfOne(
  { runs, isBinned }: Trades,
  of: "mae" | "mfe",
  axes: Axes,
  encoding: Encodings,
  frame: Frame,
  size: { readonly width: number; readonly height: number },
): Layer[] {
  const { paint, isNarrow } = frame;
  const { net, [of]: values } = runs[0]!;
  const name = of.toUpperCase();
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

/**
 * Each of several runs has its colour and shape; with many trades, the area of a mark shows their number.
 */
function marksOfSeveral(
  { runs, isOne, isBinned }: Trades,
  of: "mae" | "mfe",
  axes: Axes,
  encoding: Encodings,
  frame: Frame,
): Layer[] {
  const name = of.toUpperCase();
  const cells = isBinned ? cellsOf(runs, of, axes, frame) : [];
  const most = Math.max(2, ...cells.flatMap(({ crowded }) => crowded.map(({ count }) => count)));
  const [left, right] = axes.x.domain;
  return runs.flatMap((run, index): Layer[] => {
    const { net, [of]: values } = run;
    const { crowded, single } = cells[index] ?? { crowded: [], single: net.keys() };
    // runs that share a cell are side by side in it
    const aside = (index + 0.5) / runs.length;
    const points = [
      ...crowded.map(({ x, y, count }) => ({
        x: x[0] + (x[1] - x[0]) * aside,
        y: (y[0] + y[1]) / 2,
        area: 14 + 130 * (Math.log(count) / Math.log(most)),
        text: `${runPrefix(run, isOne)}${countOf(count, "trade")}: net ${amountText(y[0])} to ${amountText(y[1])}, ${name} ${amountText(x[0])} to ${amountText(x[1])}`,
      })),
      ...Array.from(single, (at) => ({
        x: within(values[at]!, axes.x.domain),
        y: within(net[at]!, axes.y.domain),
        area: isBinned ? 14 : 30,
        text: `${runPrefix(run, isOne)}net ${amountText(net[at]!)}, ${name} ${amountText(values[at]!)}`,
      })),
    ].filter(({ x }) => x >= left && x <= right);
    const { colour, shape } = runLook(run, isOne);
    return [
      {
        data: { values: points },
        mark: {
          ...{ type: "point", aria: true, shape, filled: true, fill: frame.paint(colour) },
          ...{ fillOpacity: 0.6, opacity: 1 },
        },
        encoding: {
          x: encoding.across,
          y: encoding.up,
          size: { field: "area", type: "quantitative", scale: null, legend: null },
          description: { field: "text", type: "nominal" },
        },
      },
    ];
  });
}

/** The cells of each run, on one grid: the finest with which all runs have few enough marks. */
function cellsOf(
  runs: readonly Run[],
  of: "mae" | "mfe",
  { x, y }: Axes,
  { isNarrow }: Frame,
): readonly ScatterCells[] {
  for (let share = 1; ; share *= 0.8) {
    const columns = Math.max(1, Math.round((isNarrow ? 20 : 36) * share));
    const rows = Math.max(1, Math.round((isNarrow ? 14 : 24) * share));
    const grid = { x: x.domain, y: y.domain, columns, rows };
    const cells = runs.map((run) => scatterCells(run[of], run.net, grid));
    const marks = cells.reduce((sum, { crowded, single }) => sum + crowded.length + single.length, 0);
    if (marks <= mostMarks || columns * rows === 1) return cells;
  }
}

function colourOf(net: number): Colour {
  return net < 0 ? "loss" : "gain";
}

/** Six steps, by the logarithm of the count. */
function darkness({ count }: ScatterCell, most: number): number {
  const step = Math.min(5, Math.floor((Math.log(count) / Math.log(Math.max(2, most))) * 6));
  return [0.16, 0.28, 0.42, 0.58, 0.76, 0.95][step]!;
}

function within(value: number, [low, high]: readonly [number, number]): number {
  return Math.min(high, Math.max(low, value));
}

function beyondAxes(trades: Trades): number {
  const extents = (["net", "mae", "mfe"] as const).map((of) => {
    const values = joined(trades, of);
    return [values, ...innerExtent(values)] as const;
  });
  return extents[0]![0].reduce((count, _, index) => {
    const isBeyond = extents.some(([values, low, high]) => values[index]! < low || values[index]! > high);
    return count + (isBeyond ? 1 : 0);
  }, 0);
}

/** Trades in ten parts of equal size, the deepest MAE first. */
function tenths({ net, mae }: Run): string[][] {
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
