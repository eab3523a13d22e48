import type { Chart, NoChart } from "./chart.ts";
import type { CandlesData } from "./chart-data.ts";
import { type Candle, candlesOf } from "./drawing/candles.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { timeEncoding, valueEncoding } from "./drawing/encodings.ts";
import type { Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, durationText, priceText, timeText } from "./drawing/number-text.ts";
import { mostRows } from "./drawing/readings.ts";
import { timeAxis } from "./drawing/time-axis.ts";
import { valueAxis } from "./drawing/value-axis.ts";

const id = "candles";

/** Bars of a symbol as candles, with the fills among them: buys point up, sells down. */
export async function candlesChart(data: CandlesData): Promise<Chart | NoChart> {
  const { symbol, bars, fills, note = "" } = data;
  const title = `${symbol}: bars and fills`;
  const candles = candlesOf(bars, mostCandles.wide);
  if (candles.length === 0) return { id, title, reason: `no bars of ${symbol}` };
  const buys = fills.isBuy.reduce((sum, isBuy) => sum + isBuy, 0);
  const shown = fillMarks(fills, candles, mostMarks.wide).length;
  const counted = `${countOf(buys, "buy")} and ${countOf(fills.times.length - buys, "sell")}`;
  const rows = candles.length <= mostRows ? candles : candlesOf(bars, mostRows);
  return await drawChart({
    id,
    title,
    caption: [
      `${timeText(bars.times[0]!)} to ${timeText(bars.times.at(-1)! + bars.intervalMs)} UTC, ${counted}.`,
      `Bars of ${durationText(bars.intervalMs)}${candles[0]!.bars > 1 ? `, ${candles[0]!.bars} to a candle` : ""}.`,
      shown < fills.times.length
        ? "Fills of one side that lie near each other in time are one mark, at their average price."
        : "",
      note,
    ]
      .filter(Boolean)
      .join(" "),
    label: `Candles of ${symbol}, from ${priceText(candles[0]!.open)} to ${priceText(candles.at(-1)!.close)}, with ${counted}.`,
    numbers: {
      columns: ["From (UTC)", "Open", "High", "Low", "Close"],
      rows: rows.map(({ from, open, high, low, close }) => [
        timeText(from),
        ...[open, high, low, close].map(priceText),
      ]),
      note:
        rows.length < bars.times.length
          ? `${countOf(bars.times.length, "bar")}, ${rows[0]!.bars} to a row.`
          : "",
    },
    draw: (frame) => draw(frame, data),
  });
}

const mostCandles = { wide: 240, narrow: 80 };
/** Of one side. */
const mostMarks = { wide: 90, narrow: 28 };

interface FillMark {
  readonly t: number;
  readonly price: number;
  readonly isBuy: boolean;
  readonly text: string;
}

function draw(frame: Frame, { bars, fills }: CandlesData): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const height = isNarrow ? 200 : 320;
  const candles = candlesOf(bars, isNarrow ? mostCandles.narrow : mostCandles.wide);
  const marks = fillMarks(fills, candles, isNarrow ? mostMarks.narrow : mostMarks.wide);
  const y = valueAxis(
    [...candles.flatMap(({ low, high }) => [low, high]), ...marks.map(({ price }) => price)],
    { fontSize, ticks: isNarrow ? 4 : 6 },
  );
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const from = candles[0]!.from;
  const to = candles.at(-1)!.to;
  const time = timeAxis(from, to, { width, fontSize, overhang: [left, right] });
  const names = legend(
    [
      { label: "Up", shape: "square", colour: "gain", opacity: 0.45 },
      { label: "Down", shape: "square", colour: "loss" },
      { label: "Buy", shape: "triangle-up", colour: "accent" },
      { label: "Sell", shape: "triangle-down", colour: "ink" },
    ],
    frame,
    width,
  );
  const description = { field: "text", type: "nominal" as const };
  const price = (field: string) => valueEncoding(y, field, frame);
  const at = (field: string) => timeEncoding(time, field, frame);
  return {
    left,
    right,
    bottom: time.height,
    panels: [
      {
        height,
        above: names.height,
        layers: [
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
                  // a rising candle is lighter: told apart without its colour
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
                size: isNarrow ? 46 : 64,
                opacity: 1,
              },
              encoding: { x: at("t"), y: price("price"), description },
            }),
          ),
          ...names.layers,
        ],
      },
    ],
  };
}

/** The body is a little narrower than its time. */
function inset({ from, to }: Candle) {
  const room = (to - from) * 0.15;
  return { left: from + room, right: to - room, middle: (from + to) / 2 };
}

function candleText({ from, open, high, low, close }: Candle): string {
  return `${timeText(from)}\nopen ${priceText(open)}, high ${priceText(high)}, low ${priceText(low)}, close ${priceText(close)}`;
}

/** A mark a fill; where there are many, one for those of a side within a stretch of time, at their average price. */
function fillMarks(
  { times, prices, quantities, isBuy }: CandlesData["fills"],
  candles: readonly Candle[],
  most: number,
): FillMark[] {
  const known = Array.from(times.keys()).filter((index) => Number.isFinite(prices[index]));
  const side = (index: number) => (isBuy[index] === 1 ? "Buy" : "Sell");
  const start = candles[0]!.from;
  const stretchMs = (candles.at(-1)!.to - start) / most;
  const stretch = (index: number) =>
    Math.min(most - 1, Math.max(0, Math.floor((times[index]! - start) / stretchMs)));
  const groups = Map.groupBy(known, (index) =>
    known.length <= most ? String(index) : `${side(index)} ${stretch(index)}`,
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
