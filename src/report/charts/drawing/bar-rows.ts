import { type Drawing, plotWidth } from "./draw-chart.ts";
import { pixels, positionEncoding } from "./encodings.ts";
import type { Colour, Frame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import { legend } from "./legend.ts";
import { textWidth, textWithin } from "./text-width.ts";
import { extentOf, spacedAxis, type ValueAxis, valueAxis } from "./value-axis.ts";

/** A bar with its name at the left and its value in words at the right. */
export interface BarRow {
  readonly label: string;
  readonly from: number;
  readonly to: number;
  readonly colour: Colour;
  readonly value: string;
  /** What is said while the pointer is on it. */
  readonly text: string;
}

export interface BarPanel {
  /** Stands above its bars; null where there is no other panel to tell it from. */
  readonly heading: string | null;
  readonly rows: readonly BarRow[];
}

export interface BarOptions {
  readonly unit?: "number" | "percent";
  /** What the axis counts, beneath it. */
  readonly axisTitle: string;
  readonly isWhole?: boolean;
  /** Whether each panel has an axis of its own, as where they count different things. */
  readonly areApart?: boolean;
}

/** Bars beneath each other, one a row, in panels. */
export function barRows(frame: Frame, panels: readonly BarPanel[], options: BarOptions): Drawing {
  const { fontSize, isNarrow } = frame;
  const { areApart = false, axisTitle } = options;
  const rowHeight = isNarrow ? 22 : 24;
  const rows = panels.flatMap((panel) => panel.rows);
  const labelRoom = isNarrow ? 112 : 240;
  const labels = rows.map(({ label }) => textWidth(textWithin(label, fontSize, labelRoom), fontSize));
  const left = Math.max(40, ...labels) + 10;
  const right = Math.max(...rows.map(({ value }) => textWidth(value, fontSize))) + 10;
  const width = plotWidth(frame, { left, right });
  const axisFor = (some: readonly BarRow[]): ValueAxis =>
    valueAxis([0, ...extentOf(some.flatMap(({ from, to }) => [from, to]))], {
      fontSize,
      ticks: isNarrow ? 2 : 6,
      isNice: false,
      ...(options.unit === undefined ? {} : { unit: options.unit }),
      ...(options.isWhole === undefined ? {} : { isWhole: options.isWhole }),
    });
  const shared = axisFor(rows);
  const axisHeight = fontSize + 12 + (axisTitle === "" ? 0 : fontSize + 8);
  return {
    left,
    right,
    bottom: axisHeight,
    between: areApart ? axisHeight + 4 : 6,
    panels: panels.map(({ heading, rows: own }, index) => {
      const isLast = index === panels.length - 1;
      const height = own.length * rowHeight;
      const above = legend(
        heading === null ? [] : [{ label: heading, shape: "none", colour: "ink" }],
        frame,
        width,
      );
      const across = spacedAxis(areApart ? axisFor(own) : shared, width, fontSize);
      return {
        height,
        above: above.height,
        layers: [
          ...barLayers(own, across, frame, {
            labelRoom,
            valueAt: width + right - 2,
            rowHeight,
            isLabelled: areApart || isLast,
            axisTitle: textWithin(axisTitle, fontSize, width),
          }),
          ...above.layers,
        ],
      };
    }),
  };
}

function barLayers(
  rows: readonly BarRow[],
  axis: ValueAxis,
  frame: Frame,
  room: {
    readonly labelRoom: number;
    readonly valueAt: number;
    readonly rowHeight: number;
    readonly isLabelled: boolean;
    readonly axisTitle: string;
  },
): Layer[] {
  const { fontSize, paint } = frame;
  const { labelRoom, valueAt, rowHeight, isLabelled, axisTitle } = room;
  const position = positionEncoding(axis, "from", frame, { title: axisTitle || null, hasGrid: true });
  const x = isLabelled ? position : { ...position, title: null, axis: { ...position.axis, labels: false } };
  const values = rows.map((row, index) => ({
    ...row,
    label: textWithin(row.label, fontSize, labelRoom),
    top: index * rowHeight + 4,
    middle: (index + 0.5) * rowHeight,
    bottom: (index + 1) * rowHeight - 4,
  }));
  const colours = [...new Set(rows.map(({ colour }) => colour))];
  const textLayer = (field: "label" | "value", at: number): Layer => ({
    data: { values: values.map((row) => ({ text: row[field], middle: row.middle })) },
    mark: {
      type: "text",
      align: "right",
      baseline: "middle",
      fill: paint(field === "label" ? "ink" : "muted"),
    },
    encoding: { x: { value: at }, y: pixels("middle"), text: { field: "text", type: "nominal" } },
  });
  return [
    ...colours.map(
      (colour): Layer => ({
        data: { values: values.filter((row) => row.colour === colour) },
        mark: { type: "rect", aria: true, fill: paint(colour), fillOpacity: 0.85 },
        encoding: {
          x,
          x2: { field: "to" },
          y: pixels("top"),
          y2: { field: "bottom" },
          description: { field: "text", type: "nominal" },
        },
      }),
    ),
    textLayer("label", -10),
    textLayer("value", valueAt),
  ];
}
