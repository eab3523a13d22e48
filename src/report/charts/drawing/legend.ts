import type { Colour, Frame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import { textWidth, textWithin } from "./text-width.ts";

/** What a mark of a chart stands for. */
export interface LegendEntry {
  readonly label: string;
  /** `none`: a heading. */
  readonly shape: "none" | "line" | "square" | "circle" | "diamond" | "triangle-up" | "triangle-down";
  readonly colour: Colour;
  readonly dash?: readonly number[];
  readonly opacity?: number;
}

/** Entries in rows above a plot. */
export interface Legend {
  readonly layers: readonly Layer[];
  /** px; zero where there are no entries. */
  readonly height: number;
}

/**
 * A legend, as marks that stand above the plot: vega's own would be laid out by widths that it cannot measure here.
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
  const layers = placed.flatMap(({ entry, text, x, row }): Layer[] => {
    const y = -height + row * rowHeight + rowHeight / 2;
    const label: Layer = {
      data: { values: [{}] },
      mark: {
        type: "text",
        align: "left",
        baseline: "middle",
        text,
        fill: paint(entry.shape === "none" ? "ink" : "muted"),
        ...(entry.shape === "none" ? { fontWeight: 600 } : {}),
      },
      encoding: { x: { value: x + (entry.shape === "none" ? 0 : symbolWidth) }, y: { value: y } },
    };
    return entry.shape === "none" ? [label] : [symbolOf(entry, frame, x, y), label];
  });
  return { layers, height };
}

const symbolWidth = 20;

function symbolOf(entry: LegendEntry, { paint }: Frame, x: number, y: number): Layer {
  const { colour, shape, opacity = 1, dash = [] } = entry;
  if (shape === "line") {
    return {
      data: { values: [{}] },
      mark: { type: "rule", stroke: paint(colour), strokeWidth: 2, strokeDash: [...dash], opacity },
      encoding: { x: { value: x }, x2: { value: x + 14 }, y: { value: y } },
    };
  }
  return {
    data: { values: [{}] },
    mark: {
      type: "point",
      shape,
      filled: true,
      fill: paint(colour),
      size: shape === "square" ? 90 : 64,
      opacity,
    },
    encoding: { x: { value: x + 7 }, y: { value: y } },
  };
}
