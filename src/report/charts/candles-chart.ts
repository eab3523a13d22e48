import type { Chart, NoChart } from "./chart.ts";
import type { CandlesData, CandlesRun } from "./chart-data.ts";
import { type Candle, candlesOf } from "./drawing/candles.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { timeEncoding, valueEncoding } from "./drawing/encodings.ts";
import type { Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, durationText, priceText, timeText } from "./drawing/number-text.ts";
import { mostRows } from "./drawing/readings.ts";
import { noDataSentence, runPrefix } from "./drawing/run-look.ts";
import { textWithin } from "./drawing/text-width.ts";
import { timeAxis } from "./drawing/time-axis.ts";
import { extentOf, valueAxis } from "./drawing/value-axis.ts";

const id = "candles";

/** Bars as candles, with the fills among them: buys point up, sells down. One plot per run, all with the same scales. */
export async function candlesChart(data: CandlesData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs.filter(({ bars }) => candlesOf(bars, mostRows).length > 0);
  const [first] = data.runs;
  const title = isOne ? `${first!.symbol}: bars and fills` : "Bars and fills";
  if (runs.length === 0) {
    const symbols = [...new Set(data.runs.map(({ symbol }) => symbol).filter(Boolean))];
    return { id, title, reason: symbols.length === 0 ? "no bars" : `no bars of ${symbols.join(", ")}` };
  }
  const told = runs.map((run) => toldOf(run, isOne));
  const isJoined = runs.some(({ bars, fills }) => {
    return (
      fillMarks(fills, candlesOf(bars, most(runs.length).candles), most(runs.length).marks).length <
      fills.times.length
    );
  });
  const ownRows = Math.floor(mostRows / runs.length);
  const rows = runs.map(({ bars }) => {
    const candles = candlesOf(bars, most(runs.length).candles);
    return candles.length <= ownRows ? candles : candlesOf(bars, ownRows);
  });
  return await drawChart({
    id,
    title,
    caption: [
      ...told.map(({ caption }) => caption),
      isOne
        ? ""
        : "All plots have the same scales: the same percentage of the price from top to bottom, and the same time from left to right.",
      isJoined ? "Fills on one side that are close in time are one mark, at their average price." : "",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Candles of ${told.map(({ label }) => label).join("; ")}.`,
    numbers: {
      columns: ["From (UTC)", ...(isOne ? [] : ["Run", "Symbol"]), "Open", "High", "Low", "Close"],
      rows: runs.flatMap((run, index) =>
        rows[index]!.map(({ from, open, high, low, close }) => [
          timeText(from),
          ...(isOne ? [] : [run.label, run.symbol]),
          ...[open, high, low, close].map(priceText),
        ]),
      ),
      note: runs
        .flatMap((run, index) => {
          const [one] = rows[index]!;
          if (rows[index]!.length >= run.bars.times.length) return [];
          return `${runPrefix(run, isOne)}${countOf(run.bars.times.length, "bar")}, ${one!.bars} to a row.`;
        })
        .join(" "),
    },
    draw: (frame) => draw(frame, runs, isOne),
  });
}

function toldOf(run: CandlesRun, isOne: boolean): { readonly caption: string; readonly label: string } {
  const { symbol, bars, fills } = run;
  const candles = candlesOf(bars, most(1).candles);
  const buys = fills.isBuy.reduce((sum, isBuy) => sum + isBuy, 0);
  const counted = `${countOf(buys, "buy")} and ${countOf(fills.times.length - buys, "sell")}`;
  const joined = candles[0]!.bars > 1 ? `, ${candles[0]!.bars} to a candle` : "";
  const span = `${timeText(bars.times[0]!)} to ${timeText(bars.times.at(-1)! + bars.intervalMs)} UTC`;
  return {
    caption: `${isOne ? "" : `${run.label} ${symbol}, `}${span}, ${counted}, bars of ${durationText(bars.intervalMs)}${joined}.`,
    label: `${runPrefix(run, isOne)}${symbol}, from ${priceText(candles[0]!.open)} to ${priceText(candles.at(-1)!.close)}, with ${counted}`,
  };
}

/** Candles of a plot, and marks of fills on one side: fewer if there are several plots. */
function most(plots: number, isNarrow = false): { readonly candles: number; readonly marks: number } {
  const whole = isNarrow ? { candles: 80, marks: 28 } : { candles: 240, marks: 90 };
  if (plots === 1) return whole;
  const share = isNarrow ? 1 : 2 / 3;
  return { candles: Math.floor(whole.candles * share), marks: Math.floor((whole.marks * share) / 1.5) };
}

/** From the lowest to the highest price drawn; for several runs, the same percentage around the middle of each. */
function priceRanges(
  drawn: readonly { readonly candles: readonly Candle[]; readonly marks: readonly FillMark[] }[],
): readonly (readonly [number, number])[] {
  const extents = drawn.map(({ candles, marks }) =>
    extentOf([...candles.flatMap(({ low, high }) => [low, high]), ...marks.map(({ price }) => price)]),
  );
  if (drawn.length === 1) return extents;
  const halves = extents.map(([low, high]) => {
    const middle = (low + high) / 2;
    return middle === 0 ? 0 : (high - low) / 2 / Math.abs(middle);
  });
  const half = Math.max(...halves);
  return extents.map(([low, high]) => {
    const middle = (low + high) / 2;
    return [middle - half * Math.abs(middle), middle + half * Math.abs(middle)];
  });
}

interface FillMark {
  readonly t: number;
  readonly price: number;
  readonly isBuy: boolean;
  readonly text: string;
}

function draw(frame: Frame, runs: readonly CandlesRun[], isOne: boolean): Drawing {
  const { fontSize, isNarrow } = frame;
  const limits = most(runs.length, isNarrow);
  const drawn = runs.map(({ bars, fills }) => {
    const candles = candlesOf(bars, limits.candles);
    return { candles, marks: fillMarks(fills, candles, limits.marks) };
  });
  const height = runs.length === 1 ? (isNarrow ? 200 : 320) : isNarrow ? 120 : 130;
  const ticks = runs.length === 1 ? (isNarrow ? 4 : 6) : 3;
  const axes = priceRanges(drawn).map((range) =>
    valueAxis(range, { fontSize, ticks, isNice: runs.length === 1 }),
  );
  const left = Math.max(isNarrow ? 40 : 52, ...axes.map(({ labelWidth }) => labelWidth + 8));
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const length = Math.max(...drawn.map(({ candles }) => candles.at(-1)!.to - candles[0]!.from));
  const times = drawn.map(({ candles }) =>
    timeAxis(candles[0]!.from, candles[0]!.from + length, { width, fontSize, overhang: [left, right] }),
  );
  const bottom = Math.max(...times.map(({ height: needed }) => needed));
  return {
    left,
    right,
    bottom,
    between: bottom + 4,
    panels: drawn.map(({ candles, marks }, index) => {
      const run = runs[index]!;
      const names = legend(
        [
          ...(isOne
            ? []
            : [
                {
                  label: textWithin(`${run.label} ${run.symbol}`, fontSize, isNarrow ? 150 : 400),
                  shape: "none" as const,
                  colour: "ink" as const,
                },
              ]),
          ...(index === 0
            ? ([
                { label: "Up", shape: "square", colour: "gain", opacity: 0.45 },
                { label: "Down", shape: "square", colour: "loss" },
                { label: "Buy", shape: "triangle-up", colour: "accent" },
                { label: "Sell", shape: "triangle-down", colour: "ink" },
              ] as const)
            : []),
        ],
        frame,
        width,
      );
      return {
        height,
        above: names.height,
        layers: [
          ...candleLayers(candles, marks, { time: times[index]!, y: axes[index]! }, frame, runs.length > 1),
          ...names.layers,
        ],
      };
    }),
  };
}

function candleLayers(
  candles: readonly Candle[],
  marks: readonly FillMark[],
  { time, y }: { readonly time: ReturnType<typeof timeAxis>; readonly y: ReturnType<typeof valueAxis> },
  frame: Frame,
  isSmall: boolean,
): Layer[] {
  const { isNarrow, paint } = frame;
  const description = { field: "text", type: "nominal" as const };
  const price = (field: string) => valueEncoding(y, field, frame);
  const at = (field: string) => timeEncoding(time, field, frame);
  return [
    ...([true, false] as const).flatMap((isUp): Layer[] => {
      const colour = paint(isUp ? "gain" : "loss");
      const values = candles
        .filter(({ open, close }) => close >= open === isUp)
        .map((candle) => ({ ...candle, ...inset(candle), text: candleText(candle) }));
      return [
        {
          data: { values },
          mark: { type: "rule", stroke: colour, strokeWidth: 1 },
          encoding: { x: at("middle"), y: price("low"), y2: { field: "high" } },
        },
        {
          data: { values },
          mark: {
            type: "rect",
            aria: true,
            fill: colour,
            // rising candles are lighter, to be recognized without colour
            fillOpacity: isUp ? 0.35 : 1,
            stroke: colour,
            strokeWidth: 0.75,
          },
          encoding: {
            x: at("left"),
            x2: { field: "right" },
            y: price("open"),
            y2: { field: "close" },
            description,
          },
        },
      ];
    }),
    ...([true, false] as const).map(
      (isBuy): Layer => ({
        data: { values: marks.filter((mark) => mark.isBuy === isBuy) },
        mark: {
          type: "point",
          aria: true,
          shape: isBuy ? "triangle-up" : "triangle-down",
          filled: true,
          fill: paint(isBuy ? "accent" : "ink"),
          stroke: paint("paper"),
          strokeWidth: 0.75,
          size: isNarrow || isSmall ? 46 : 64,
          opacity: 1,
        },
        encoding: { x: at("t"), y: price("price"), description },
      }),
    ),
  ];
}

/** The body is a little narrower than its time. */
function inset({ from, to }: Candle) {
  const room = (to - from) * 0.15;
  return { left: from + room, right: to - room, middle: (from + to) / 2 };
}

function candleText({ from, open, high, low, close }: Candle): string {
  return `${timeText(from)}\nopen ${priceText(open)}, high ${priceText(high)}, low ${priceText(low)}, close ${priceText(close)}`;
}

/** One mark per fill; if there are many, one for those on a side in a stretch of time, at their average price. */
function fillMarks(
  { times, prices, quantities, isBuy }: CandlesRun["fills"],
  candles: readonly Candle[],
  mostOfSide: number,
): FillMark[] {
  const known = Array.from(times.keys()).filter((index) => Number.isFinite(prices[index]));
  const side = (index: number) => (isBuy[index] === 1 ? "Buy" : "Sell");
  const start = candles[0]!.from;
  const stretchMs = (candles.at(-1)!.to - start) / mostOfSide;
  const stretch = (index: number) =>
    Math.min(mostOfSide - 1, Math.max(0, Math.floor((times[index]! - start) / stretchMs)));
  const groups = Map.groupBy(known, (index) =>
    known.length <= mostOfSide ? String(index) : `${side(index)} ${stretch(index)}`,
  );
  return [...groups.values()].map((own) => {
    const quantity = own.reduce((sum, index) => sum + quantities[index]!, 0);
    const value = own.reduce((sum, index) => sum + quantities[index]! * prices[index]!, 0);
    const mean = own.reduce((sum, index) => sum + prices[index]!, 0) / own.length;
    const price = quantity > 0 ? value / quantity : mean;
    const first = own[0]!;
    return {
      t: own.reduce((sum, index) => sum + times[index]!, 0) / own.length,
      price,
      isBuy: isBuy[first] === 1,
      text: `${side(first)} ${priceText(quantity)} at ${priceText(price)}${own.length > 1 ? ` in ${own.length} fills` : ""}, ${timeText(times[first]!)}`,
    };
  });
}
