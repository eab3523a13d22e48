import { pixels } from "./encodings.ts";
import type { Colour, Frame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import { textWidth, textWithin } from "./text-width.ts";

/** What a mark of a chart stands for. */
export interface LegendEntry {
  readonly label: string;
  /** `none`: a heading. */
  readonly shape:
    | "none"
    | "line"
    | "square"
    | "circle"
    | "diamond"
    | "triangle-up"
    | "triangle-down"
    | "cross";
  readonly colour: Colour;
  readonly dash?: readonly number[];
  readonly opacity?: number;
}

/** Entries in rows above a plot. */
export interface Legend {
  readonly layers: readonly Layer[];
  /** px; zero without entries. */
  readonly height: number;
}

/**
 * A legend, as marks above the plot: vega's own needs text widths that it cannot measure here.
 * @param width of the plot, px
 */
export function legend(entries: readonly LegendEntry[], frame: Frame, width: number): Legend {
  const { fontSize, paint } = frame;
  const rowHeight = fontSize + 8;
  const placed: {
    readonly entry: LegendEntry;
    readonly text: string;
    readonly x: number;
    readonly row: number;
  }[] = [];
  let x = 0;
  let row = 0;
  for (const entry of entries) {
    const symbol = entry.shape === "none" ? 0 : symbolWidth;
    const text = textWithin(entry.label, fontSize, width - symbol);
    const needed = symbol + textWidth(text, fontSize);
    if (x > 0 && x + needed > width) {
      x = 0;
      row++;
    }
    placed.push({ entry, text, x, row });
    x += needed + 14;
  }
  const height = entries.length === 0 ? 0 : (row + 1) * rowHeight + 4;
  const marks = placed.map(({ entry, text, x, row }) => ({
    text,
    at: x,
    to: x + 14,
    textAt: x + (entry.shape === "none" ? 0 : symbolWidth),
    y: -height + row * rowHeight + rowHeight / 2,
    colour: paint(entry.colour),
    shape: entry.shape,
    dash: [...(entry.dash ?? [])],
    opacity: entry.opacity ?? 1,
  }));
  const as = (field: string) => ({ field, type: "nominal" as const, scale: null, legend: null });
  const texts = (isHeading: boolean): Layer => ({
    data: { values: marks.filter(({ shape }) => (shape === "none") === isHeading) },
    mark: {
      type: "text",
      align: "left",
      baseline: "middle",
      fill: paint(isHeading ? "ink" : "muted"),
      fontWeight: isHeading ? 600 : 400,
    },
    encoding: { x: pixels("textAt"), y: pixels("y"), text: { field: "text", type: "nominal" } },
  });
  const lines: Layer = {
    data: { values: marks.filter(({ shape }) => shape === "line") },
    mark: { type: "rule", strokeWidth: 2 },
    encoding: {
      x: pixels("at"),
      x2: { field: "to" },
      y: pixels("y"),
      stroke: as("colour"),
      strokeDash: as("dash"),
    },
  };
  const symbols: Layer = {
    data: { values: marks.filter(({ shape }) => shape !== "line" && shape !== "none") },
    mark: { type: "point", filled: true, size: 80, xOffset: 7 },
    encoding: {
      x: pixels("at"),
      y: pixels("y"),
      fill: as("colour"),
      shape: as("shape"),
      opacity: { ...as("opacity"), type: "quantitative" },
    },
  };
  const has = (...shapes: LegendEntry["shape"][]) => entries.some(({ shape }) => shapes.includes(shape));
  return {
    height,
    layers: [
      ...(has("none") ? [texts(true)] : []),
      ...(entries.some(({ shape }) => shape !== "none") ? [texts(false)] : []),
      ...(has("line") ? [lines] : []),
      ...(entries.some(({ shape }) => shape !== "none" && shape !== "line") ? [symbols] : []),
    ],
  };
}

const symbolWidth = 20;
