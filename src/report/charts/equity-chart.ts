import type { Chart, NoChart } from "./chart.ts";
import type { Drawdown, EquityData, EquityRun } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { timeEncoding, valueEncoding } from "./drawing/encodings.ts";
import type { Frame } from "./drawing/frame.ts";
import { hoverBands, type Reading } from "./drawing/hover-bands.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { lineRows, linesSpan } from "./drawing/lines.ts";
import { amountText, durationText, orDash, percentText, timeText } from "./drawing/number-text.ts";
import { indexAt, readingTimes, rowsNote } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";
import { textWidth } from "./drawing/text-width.ts";
import { type TimeAxis, timeAxis } from "./drawing/time-axis.ts";
import { extentOf, logAxis, valueAxis } from "./drawing/value-axis.ts";

const id = "equity";
const title = "Equity and drawdown";
const shadedDrawdowns = 5;

/** Equity, and below it on the same axis of time the drawdown. */
export async function equityChart(data: EquityData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs.filter(({ times }) => times.length > 0);
  if (runs.length === 0) return { id, title, reason: "no equity points" };
  const isLog = runs.some(grewTenfold) && runs.every(({ equity }) => extentOf(equity)[0] > 0);
  const shaded = isOne ? data.drawdowns.filter(isKnown).slice(0, shadedDrawdowns) : [];
  const readings = readingsOf(runs, data.currency, isOne);
  const points = runs.reduce((sum, { times }) => sum + times.length, 0);
  const sentences = [
    `Equity in ${data.currency}${isLog ? ", on a logarithmic scale" : ""}; below it, the drawdown from the highest point so far.`,
    shaded.length === 0 ? "" : shadeSentence(shaded.length),
    noDataSentence(data.runs, runs),
    data.note ?? "",
  ];
  return await drawChart({
    id,
    title,
    caption: sentences.filter(Boolean).join(" "),
    label: labelOf(runs, data.currency),
    numbers: {
      columns: [
        "Time (UTC)",
        ...runs.flatMap((run) => {
          const prefix = runPrefix(run, isOne);
          return [`${prefix}Equity, ${data.currency}`, `${prefix}Drawdown`];
        }),
      ],
      rows: readings.map(({ time, cells }) => [timeText(time), ...cells]),
      note: rowsNote(readings.length, points, "points"),
    },
    draw: (frame) => draw(frame, { runs, isOne, shaded, readings, isLog }),
  });
}

interface Drawn {
  readonly runs: readonly EquityRun[];
  readonly isOne: boolean;
  readonly shaded: readonly Drawdown[];
  readonly readings: readonly (Reading & { readonly cells: readonly string[] })[];
  readonly isLog: boolean;
}

function draw(frame: Frame, { runs, isOne, shaded, readings, isLog }: Drawn): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const heights = isNarrow ? [190, 76] : [290, 104];
  const equityValues = runs.flatMap(({ equity }) => extentOf(equity));
  const options = { fontSize, ticks: isNarrow ? 4 : 6 };
  const equity = isLog ? logAxis(equityValues, options) : valueAxis(equityValues, options);
  const lowest = Math.min(0, ...runs.map(({ drawdown }) => extentOf(drawdown)[0]));
  const drawdown = valueAxis([lowest === 0 ? -0.01 : lowest, 0], {
    fontSize,
    unit: "percent",
    ticks: isNarrow ? 2 : 3,
  });
  const left = Math.max(isNarrow ? 40 : 52, equity.labelWidth + 8, drawdown.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const { from, to } = linesSpan(runs);
  const time = timeAxis(from, to, { width, fontSize, overhang: [left, right] });

  const upper = { x: timeEncoding(time, "t", frame, false), y: valueEncoding(equity, "v", frame) };
  const lower = { x: timeEncoding(time, "t", frame), y: valueEncoding(drawdown, "v", frame) };
  const strokes = runs.map((run) => runLook(run, isOne));
  const line = (run: EquityRun, values: Float64Array, encoding: typeof upper, index: number): Layer => ({
    data: { values: lineRows(run.times, values, { from, to, columns: width }) },
    mark: {
      type: "line",
      stroke: paint(strokes[index]!.colour),
      strokeWidth: 1.5,
      strokeJoin: "round",
      // a single point between two gaps becomes a dot
      strokeCap: "round",
      strokeDash: [...strokes[index]!.dash],
      // a single point draws no line
      point: run.times.length === 1 ? { filled: true, fill: paint(strokes[index]!.colour), size: 30 } : false,
    },
    encoding,
  });
  const names = legend(runEntries(runs, isOne, frame, "line"), frame, width);
  const under: Layer[] = !isOne
    ? runs.map((run, index) => line(run, run.drawdown, lower, index))
    : [
        {
          data: { values: lineRows(runs[0]!.times, runs[0]!.drawdown, { from, to, columns: width }) },
          mark: {
            type: "area",
            fill: paint("loss"),
            fillOpacity: 0.16,
            line: { stroke: paint("loss"), strokeWidth: 1 },
          },
          encoding: { ...lower, y2: { datum: 0 } },
        },
      ];
  return {
    left,
    right,
    bottom: time.height,
    between: 18,
    panels: [
      {
        height: heights[0]!,
        above: names.height + (shaded.length > 0 ? fontSize + 4 : 0),
        layers: [
          ...shades(shaded, time, frame),
          ...runs.map((run, index) => line(run, run.equity, upper, index)),
          ...hoverBands(readings, time, frame, heights[0]!),
          ...shadeNumbers(shaded, time, frame, width),
          ...names.layers,
        ],
      },
      {
        height: heights[1]!,
        above: 0,
        layers: [...under, ...hoverBands(readings, time, frame, heights[1]!)],
      },
    ],
  };
}

/** A band for each drawdown, from its peak to its recovery. */
function shades(drawdowns: readonly Drawdown[], axis: TimeAxis, frame: Frame): Layer[] {
  if (drawdowns.length === 0) return [];
  const height = frame.isNarrow ? 190 : 290;
  return [
    {
      data: { values: drawdowns.map((each) => ({ from: each.peak, to: each.recovery ?? axis.domain[1] })) },
      mark: { type: "rect", fill: frame.paint("loss"), fillOpacity: 0.07 },
      encoding: {
        x: timeEncoding(axis, "from", frame, false),
        x2: { field: "to" },
        y: { value: 0 },
        y2: { value: height },
      },
    },
  ];
}

/** The number of each above its band, moved aside if bands are narrow and close. */
function shadeNumbers(drawdowns: readonly Drawdown[], axis: TimeAxis, frame: Frame, width: number): Layer[] {
  const [start, end] = axis.domain;
  const needed = textWidth("8", frame.fontSize) + 4;
  const placed = drawdowns
    .map((each, index) => {
      const middle = (each.peak + Math.min(end, each.recovery ?? end)) / 2;
      const x = ((middle - start) / (end - start)) * width;
      return { x, text: String(index + 1), title: drawdownText(each, index) };
    })
    .sort((a, b) => a.x - b.x);
  let least = needed / 2;
  for (const each of placed) {
    each.x = Math.max(each.x, least);
    least = each.x + needed;
  }
  let most = width - needed / 2;
  for (const each of placed.toReversed()) {
    each.x = Math.min(each.x, most);
    most = each.x - needed;
  }
  return placed.map(({ x, text, title }) => ({
    data: { values: [{ title }] },
    mark: {
      type: "text",
      aria: true,
      text,
      fill: frame.paint("loss"),
      fontWeight: 600,
      baseline: "bottom",
    },
    encoding: {
      x: { value: x },
      y: { value: -3 },
      description: { field: "title", type: "nominal" },
    },
  }));
}

function drawdownText({ peak, trough, recovery, depth }: Drawdown, index: number): string {
  const end = recovery === null ? "not recovered" : `recovered ${timeText(recovery)}`;
  const length = recovery === null ? "" : `, ${durationText(recovery - peak)}`;
  return `Drawdown ${index + 1}: ${percentText(depth)}, from ${timeText(peak)}, trough ${timeText(trough)}, ${end}${length}`;
}

function readingsOf(runs: readonly EquityRun[], currency: string, isOne: boolean): Drawn["readings"] {
  return readingTimes(runs).map((time) => {
    const cells: string[] = [];
    const parts = runs.map((run) => {
      const { times, equity, drawdown } = run;
      const index = indexAt(times, time);
      const money = orDash(equity[index] ?? null, amountText);
      const down = orDash(drawdown[index] ?? null, percentText);
      cells.push(money, down);
      return `${runPrefix(run, isOne)}${money} ${currency}, drawdown ${down}`;
    });
    return { time, cells, text: [timeText(time), ...parts].join("\n") };
  });
}

function isKnown({ peak, trough, depth }: Drawdown): boolean {
  return [peak, trough, depth].every(Number.isFinite);
}

function shadeSentence(count: number): string {
  return count === 1
    ? "The drawdown is shaded."
    : `The ${count} deepest drawdowns are shaded and numbered, the deepest first.`;
}

function labelOf(runs: readonly EquityRun[], currency: string): string {
  const parts = runs.map(({ name, times, equity, drawdown }) => {
    const [first, last] = [equity[0] ?? null, equity.at(-1) ?? null];
    return `${name} from ${orDash(first, amountText)} to ${orDash(last, amountText)} ${currency}, ${timeText(times[0]!)} to ${timeText(times.at(-1)!)} UTC, deepest drawdown ${percentText(extentOf(drawdown)[0])}`;
  });
  return `Lines of equity and drawdown: ${parts.join("; ")}.`;
}

function grewTenfold({ equity }: EquityRun): boolean {
  const first = equity.find(Number.isFinite);
  return first !== undefined && first > 0 && extentOf(equity)[1] >= first * 10;
}
