import { type Drawing, plotWidth } from "./draw-chart.ts";
import { valueEncoding } from "./encodings.ts";
import type { Colour, Frame } from "./frame.ts";
import { legend } from "./legend.ts";
import { extentOf, valueAxis } from "./value-axis.ts";

/** A bar that stands up from zero, or hangs down from it. */
export interface ColumnBar {
  /** Its place in the order, and what its label is made of. */
  readonly key: number;
  readonly value: number;
  readonly colour: Colour;
  /** What is said while the pointer is on it. */
  readonly text: string;
}

export interface ColumnOptions {
  /** The label of `datum.value`, which is a key, as an expression of vega. */
  readonly labelExpr: string;
  /** One in how many bars has its label. */
  readonly labelEvery?: number;
  /** What the values are, above the plot. */
  readonly heading: string;
  /** What the keys are, beneath it. */
  readonly axisTitle?: string;
  readonly unit?: "number" | "percent";
}

/** Bars beside each other. */
export function columnBars(frame: Frame, bars: readonly ColumnBar[], options: ColumnOptions): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const { labelExpr, labelEvery = 1, heading, axisTitle = null, unit = "number" } = options;
  const y = valueAxis([0, ...extentOf(bars.map(({ value }) => value))], {
    fontSize,
    unit,
    ticks: isNarrow ? 4 : 5,
  });
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  const above = legend([{ label: heading, shape: "none", colour: "ink" }], frame, width);
  const keys = bars.map(({ key }) => key);
  return {
    left,
    right,
    bottom: fontSize + 18 + (axisTitle === null ? 0 : fontSize + 6),
    panels: [
      {
        height: isNarrow ? 150 : 200,
        above: above.height,
        layers: [
          ...[...new Set(bars.map(({ colour }) => colour))].map((colour) => ({
            data: { values: bars.filter((bar) => bar.colour === colour) },
            mark: {
              type: "bar" as const,
              aria: true,
              fill: paint(colour),
              fillOpacity: 0.85,
            },
            encoding: {
              x: {
                field: "key",
                type: "ordinal" as const,
                scale: { domain: keys, paddingInner: 0.3, paddingOuter: 0.15 },
                title: axisTitle,
                axis: {
                  labelExpr,
                  labelAngle: 0,
                  values: keys.filter((_, index) => index % labelEvery === 0),
                },
              },
              y: valueEncoding(y, "value", frame),
              description: { field: "text", type: "nominal" as const },
            },
          })),
          ...above.layers,
        ],
      },
    ],
  };
}
