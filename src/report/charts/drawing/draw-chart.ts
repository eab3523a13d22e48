import type { TopLevelSpec } from "vega-lite";
import type { Chart, ChartNumbers } from "../chart.ts";
import { type Frame, narrowFrame, plainFrame, wideFrame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import { renderSvg } from "./render-svg.ts";

/** One plot: layers on the same axes. */
export interface Panel {
  /** Of just the plot, px. */
  readonly height: number;
  /** Room above it, for a legend, px. */
  readonly above: number;
  readonly layers: readonly Layer[];
}

/** Plots of the same width, above or beside each other. */
export interface Drawing {
  readonly panels: readonly Panel[];
  readonly isSideBySide?: boolean;
  /** Room for the labels of the axes, px. */
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  /** Between two panels, px. */
  readonly between?: number;
}

export interface ChartDescription {
  readonly id: string;
  readonly title: string;
  readonly caption: string;
  /** The drawing in a sentence, for screen readers. */
  readonly label: string;
  readonly numbers: ChartNumbers;
  /** Draws it into a frame: called for each width. */
  draw(frame: Frame): Drawing;
}

/** Draws a chart at both widths, and writes its spec. */
export async function drawChart(description: ChartDescription): Promise<Chart> {
  const { id, title, caption, label, numbers } = description;
  const [wide, narrow] = await Promise.all(
    [wideFrame, narrowFrame].map(async (frame) => {
      const drawing = description.draw(frame);
      return await renderSvg(specOf(drawing, frame), sizeOf(drawing, frame), label);
    }),
  );
  const spec = specOf(description.draw(plainFrame), plainFrame);
  return {
    id,
    title,
    caption,
    spec: {
      $schema: "https://vega.github.io/schema/vega-lite/v6.json",
      description: label,
      background: plainFrame.paint("paper"),
      ...spec,
    },
    wide: wide!,
    narrow: narrow!,
    numbers,
  };
}

/** How wide each plot is in a frame, px. */
export function plotWidth(
  frame: Frame,
  { left, right, between = 0 }: Pick<Drawing, "left" | "right" | "between">,
  side = 1,
): number {
  return Math.floor((frame.width - left - right - between * (side - 1)) / side);
}

function widthIn(frame: Frame, drawing: Drawing): number {
  return plotWidth(frame, drawing, drawing.isSideBySide ? drawing.panels.length : 1);
}

function spacingOf({ panels, isSideBySide = false, between = 0 }: Drawing): number {
  return between + (isSideBySide ? 0 : Math.max(0, ...panels.slice(1).map(({ above }) => above)));
}

function sizeOf(drawing: Drawing, frame: Frame) {
  const { panels, left, right, bottom, isSideBySide = false } = drawing;
  const heights = panels.map(({ height }) => height);
  const above = isSideBySide ? Math.max(...panels.map((panel) => panel.above)) : panels[0]!.above;
  return {
    // the remainder of a division becomes room at the right
    plotWidth: frame.width - left - right,
    plotHeight: isSideBySide
      ? Math.max(...heights)
      : heights.reduce((sum, height) => sum + height, 0) + spacingOf(drawing) * (panels.length - 1),
    margin: { left, right, top: above + 8, bottom },
  };
}

function specOf(drawing: Drawing, frame: Frame): TopLevelSpec {
  const width = widthIn(frame, drawing);
  const plots = drawing.panels.map(({ height, layers }) => ({ width, height, layer: [...layers] }));
  const config = configOf(frame);
  const [only, ...more] = plots;
  if (more.length === 0) return { ...only!, config };
  const arranged = { spacing: spacingOf(drawing), bounds: "flush" as const, config };
  return drawing.isSideBySide ? { hconcat: plots, ...arranged } : { vconcat: plots, ...arranged };
}

function configOf({ paint, fontSize, fontFamily }: Frame) {
  return {
    background: "transparent",
    font: fontFamily,
    view: { stroke: null },
    // vega describes marks and axes at length; only a mark's own description is worth reading
    aria: true,
    mark: { aria: false },
    axis: {
      aria: false,
      domain: false,
      ticks: false,
      grid: false,
      gridColor: paint("line"),
      domainColor: paint("muted"),
      labelColor: paint("muted"),
      labelFontSize: fontSize,
      labelPadding: 6,
      labelLimit: 0,
      labelOverlap: false,
      labelBound: false,
      labelFlush: false,
      titleColor: paint("muted"),
      titleFontSize: fontSize,
      titleFontWeight: "normal" as const,
    },
    text: { fontSize },
  };
}
