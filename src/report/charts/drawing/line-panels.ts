import { type Drawing, plotWidth } from "./draw-chart.ts";
import { timeEncoding, valueEncoding } from "./encodings.ts";
import type { Colour, Frame } from "./frame.ts";
import { hoverBands, type Reading } from "./hover-bands.ts";
import type { Layer } from "./layer.ts";
import { type LegendEntry, legend } from "./legend.ts";
import { lineRows, linesSpan } from "./lines.ts";
import { timeAxis } from "./time-axis.ts";
import { extentOf, valueAxis } from "./value-axis.ts";

/** One line of a panel. */
export interface PanelLine {
  readonly name: string;
  readonly times: Float64Array;
  readonly values: Float64Array;
  readonly colour: Colour;
  readonly dash: readonly number[];
  /** Filled down to zero. */
  readonly isArea?: boolean;
  /** Holds until the next point. */
  readonly isStep?: boolean;
}

export interface LinePanel {
  /** Shown above it. */
  readonly heading: string;
  readonly unit: "number" | "percent";
  /** Whether zero is always on the axis. */
  readonly hasZero: boolean;
  readonly lines: readonly PanelLine[];
  /** Shown beside the heading: the given names, or those of the lines. */
  readonly names?: readonly LegendEntry[] | "lines";
}

/** Panels of lines below each other, on one axis of time. At least one line has a point. */
export function linePanels(
  frame: Frame,
  panels: readonly LinePanel[],
  readings: readonly Reading[],
): Drawing {
  const { fontSize, isNarrow } = frame;
  const height = panels.length === 1 ? (isNarrow ? 170 : 230) : isNarrow ? 110 : 140;
  const axes = panels.map(({ lines, unit, hasZero }) => {
    const values = lines.flatMap((line) => extentOf(line.values));
    return valueAxis(hasZero ? [0, ...values] : values, { fontSize, unit, ticks: isNarrow ? 3 : 4 });
  });
  const left = Math.max(isNarrow ? 40 : 52, ...axes.map(({ labelWidth }) => labelWidth + 8));
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const { from, to } = linesSpan(panels.flatMap(({ lines }) => lines));
  const time = timeAxis(from, to, { width, fontSize, overhang: [left, right] });
  return {
    left,
    right,
    bottom: time.height,
    between: 12,
    panels: panels.map(({ heading, lines, names: given = [] }, index) => {
      const isLast = index === panels.length - 1;
      const y = valueEncoding(axes[index]!, "v", frame);
      const x = timeEncoding(time, "t", frame, isLast);
      const names: readonly LegendEntry[] =
        given === "lines"
          ? lines.map(({ name, colour, dash, isArea = false }) => ({
              label: name,
              shape: isArea ? "square" : "line",
              colour,
              dash,
              opacity: isArea ? 0.4 : 1,
            }))
          : given;
      const above = legend([{ label: heading, shape: "none", colour: "ink" }, ...names], frame, width);
      return {
        height,
        above: above.height,
        layers: [
          ...lines.map((line): Layer => lineLayer(line, { from, to, columns: width }, { x, y }, frame)),
          ...hoverBands(readings, time, frame, height),
          ...above.layers,
        ],
      };
    }),
  };
}

function lineLayer(
  { times, values, colour, dash, isArea = false, isStep = false }: PanelLine,
  span: { from: number; to: number; columns: number },
  encoding: { x: ReturnType<typeof timeEncoding>; y: ReturnType<typeof valueEncoding> },
  { paint }: Frame,
): Layer {
  const data = { values: lineRows(times, values, span) };
  const interpolate = isStep ? "step-after" : "linear";
  const isPoint = values.reduce((count, value) => count + (Number.isFinite(value) ? 1 : 0), 0) === 1;
  const point = isPoint ? { filled: true, fill: paint(colour), size: 30 } : false;
  if (isArea) {
    return {
      data,
      mark: {
        type: "area",
        interpolate,
        fill: paint(colour),
        fillOpacity: 0.18,
        line: { stroke: paint(colour), strokeWidth: 1.25 },
        point,
      },
      encoding: { ...encoding, y2: { datum: 0 } },
    };
  }
  return {
    data,
    mark: {
      type: "line",
      interpolate,
      stroke: paint(colour),
      strokeWidth: 1.5,
      strokeJoin: "round",
      // a single point between two gaps becomes a dot
      strokeCap: "round",
      strokeDash: [...dash],
      point,
    },
    encoding,
  };
}
