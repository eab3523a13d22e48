import { timeEncoding } from "./encodings.ts";
import type { Frame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import type { TimeAxis } from "./time-axis.ts";

/** The text shown while the pointer is near a time. */
export interface Reading {
  readonly time: number;
  readonly text: string;
}

/**
 * Invisible bands over a plot of lines, each of which shows the values at a time. None on narrow pages: phones do not
 * hover.
 */
export function hoverBands(
  readings: readonly Reading[],
  axis: TimeAxis,
  frame: Frame,
  height: number,
): Layer[] {
  if (frame.isNarrow || readings.length === 0) return [];
  const [start, end] = axis.domain;
  const values = readings.map(({ time, text }, index) => {
    const before = readings[index - 1]?.time ?? start;
    const after = readings[index + 1]?.time ?? end;
    return { from: index === 0 ? start : (before + time) / 2, to: (time + after) / 2, text };
  });
  return [
    {
      data: { values },
      mark: { type: "rect", aria: true, fill: frame.paint("ink"), fillOpacity: 0 },
      encoding: {
        x: timeEncoding(axis, "from", frame),
        x2: { field: "to" },
        y: { value: 0 },
        y2: { value: height },
        description: { field: "text", type: "nominal" },
      },
    },
  ];
}
