import { type Drawing, plotWidth } from "./draw-chart.ts";
import { valueEncoding } from "./encodings.ts";
import type { Colour, Frame } from "./frame.ts";
import { type LegendEntry, legend } from "./legend.ts";
import { extentOf, valueAxis } from "./value-axis.ts";

/** A bar that rises from zero, or hangs down from it. */
export interface ColumnBar {
  /** Its place in the order, and what its label is made of. */
  readonly key: number;
  /** Its place among the bars of the same key: the run's. */
  readonly lane: number;
  readonly value: number;
  readonly colour: Colour;
  /** The text shown while the pointer is on it. */
  readonly text: string;
}

export interface ColumnOptions {
  /** The label of `datum.value`, which is a key, as an expression of vega. */
  readonly labelExpr: string;
  /** Labels every n-th key. */
  readonly labelEvery?: number;
  /** What the values are, above the plot. */
  readonly heading: string;
  /** Above the plot, beside its heading. */
  readonly legend?: readonly LegendEntry[];
  /** What the keys are, shown below the plot. */
  readonly axisTitle?: string;
  readonly unit?: "number" | "percent";
}

/** The narrowest bar that can be seen, px. */
const leastWidth = 3;

/**
 * Vertical bars. Those of several runs are side by side at each key; if that makes them too narrow, each run gets its
 * own plot, with the same scales.
 */
export function columnBars(frame: Frame, bars: readonly ColumnBar[], options: ColumnOptions): Drawing {
  const { fontSize, isNarrow } = frame;
  const { heading, axisTitle = null, unit = "number" } = options;
  const y = valueAxis([0, ...extentOf(bars.map(({ value }) => value))], {
    fontSize,
    unit,
    ticks: isNarrow ? 4 : 5,
  });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const keys = [...new Set(bars.map(({ key }) => key))];
  const lanes = [...new Set(bars.map(({ lane }) => lane))];
  const isApart = lanes.length > 1 && (width / keys.length / lanes.length) * 0.7 < leastWidth;
  const height = isApart ? (isNarrow ? 64 : 80) : isNarrow ? 150 : 200;
  const own = isApart ? lanes.map((lane) => bars.filter((bar) => bar.lane === lane)) : [bars];
  const scaled = isApart ? { ...y, ...fewer(y) } : y;
  return {
    left,
    right,
    bottom: fontSize + 18 + (axisTitle === null ? 0 : fontSize + 6),
    // keeps the lowest label of one plot from the highest of the next
    between: fontSize + 8,
    panels: own.map((some, index) => {
      const above = legend(
        index > 0 ? [] : [{ label: heading, shape: "none", colour: "ink" }, ...(options.legend ?? [])],
        frame,
        width,
      );
      return {
        height,
        above: above.height,
        layers: [
          ...barLayers(
            some,
            { keys, lanes: isApart ? [] : lanes, y: scaled, isLabelled: index === own.length - 1 },
            options,
            frame,
          ),
          ...above.layers,
        ],
      };
    }),
  };
}

/** Keeps only zero and the ends, for a low plot. */
function fewer({ values, labels }: ReturnType<typeof valueAxis>) {
  const kept = [...values.keys()].filter(
    (index) => index === 0 || index === values.length - 1 || values[index] === 0,
  );
  // a label of zero next to an end would run into the end's label
  const apart = kept.filter(
    (index) => values[index] === 0 || Math.abs(index - values.indexOf(0)) > values.length / 4,
  );
  return { values: apart.map((index) => values[index]!), labels: apart.map((index) => labels[index]!) };
}

function barLayers(
  bars: readonly ColumnBar[],
  axes: {
    readonly keys: readonly number[];
    /** No offset if each key has only one bar. */
    readonly lanes: readonly number[];
    readonly y: ReturnType<typeof valueAxis>;
    readonly isLabelled: boolean;
  },
  { labelExpr, labelEvery = 1, axisTitle }: ColumnOptions,
  frame: Frame,
) {
  const { keys, lanes, y, isLabelled } = axes;
  const isGrouped = lanes.length > 1;
  return [...new Set(bars.map(({ colour }) => colour))].map((colour) => ({
    data: { values: bars.filter((bar) => bar.colour === colour) },
    mark: {
      type: "bar" as const,
      aria: true,
      fill: frame.paint(colour),
      fillOpacity: 0.85,
    },
    encoding: {
      x: {
        field: "key",
        type: "ordinal" as const,
        scale: { domain: [...keys], paddingInner: isGrouped ? 0.25 : 0.3, paddingOuter: 0.15 },
        title: isLabelled ? (axisTitle ?? null) : null,
        axis: isLabelled
          ? { labelExpr, labelAngle: 0, values: keys.filter((_, index) => index % labelEvery === 0) }
          : null,
      },
      ...(isGrouped
        ? { xOffset: { field: "lane", type: "ordinal" as const, scale: { domain: [...lanes] } } }
        : {}),
      y: valueEncoding(y, "value", frame),
      description: { field: "text", type: "nominal" as const },
    },
  }));
}
