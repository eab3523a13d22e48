import { type Drawing, plotWidth } from "./draw-chart.ts";
import { pixels, positionEncoding } from "./encodings.ts";
import type { Colour, Frame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import { type LegendEntry, legend } from "./legend.ts";
import { textWidth, textWithin } from "./text-width.ts";
import { extentOf, spacedAxis, type ValueAxis, valueAxis } from "./value-axis.ts";

/** A bar with its value as text at the right. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly colour: Colour;
  readonly value: string;
  /** The text shown while the pointer is on it. */
  readonly text: string;
}

/** Bars below each other under one name at the left: a single bar, or one per run. */
export interface BarGroup {
  readonly label: string;
  readonly bars: readonly Bar[];
}

export interface BarPanel {
  /** Shown above its bars; null for the only panel. */
  readonly heading: string | null;
  readonly groups: readonly BarGroup[];
}

export interface BarOptions {
  readonly unit?: "number" | "percent";
  /** What the axis counts, shown below it. */
  readonly axisTitle: string;
  readonly isWhole?: boolean;
  /** Whether each panel has its own axis, because they count different things. */
  readonly areApart?: boolean;
  /** Above the first panel. */
  readonly legend?: readonly LegendEntry[];
}

/** Groups of bars below each other, in panels. */
export function barRows(frame: Frame, panels: readonly BarPanel[], options: BarOptions): Drawing {
  const { fontSize, isNarrow } = frame;
  const { areApart = false, axisTitle } = options;
  const groups = panels.flatMap((panel) => panel.groups);
  const bars = groups.flatMap((group) => group.bars);
  const labelRoom = isNarrow ? 112 : 240;
  const labels = groups.map(({ label }) => textWidth(textWithin(label, fontSize, labelRoom), fontSize));
  const left = Math.max(40, ...labels) + 10;
  const right = Math.max(...bars.map(({ value }) => textWidth(value, fontSize))) + 10;
  const width = plotWidth(frame, { left, right });
  const axisFor = (some: readonly BarGroup[]): ValueAxis =>
    valueAxis([0, ...extentOf(some.flatMap((group) => group.bars.flatMap(({ from, to }) => [from, to])))], {
      fontSize,
      ticks: isNarrow ? 2 : 6,
      isNice: false,
      ...(options.unit === undefined ? {} : { unit: options.unit }),
      ...(options.isWhole === undefined ? {} : { isWhole: options.isWhole }),
    });
  const shared = axisFor(groups);
  const axisHeight = fontSize + 12 + (axisTitle === "" ? 0 : fontSize + 8);
  return {
    left,
    right,
    bottom: axisHeight,
    between: areApart ? axisHeight + 4 : 6,
    panels: panels.map(({ heading, groups: own }, index) => {
      const isLast = index === panels.length - 1;
      const placed = placedGroups(own, frame);
      const above = legend(
        [
          ...(heading === null ? [] : [{ label: heading, shape: "none" as const, colour: "ink" as const }]),
          ...(index === 0 ? (options.legend ?? []) : []),
        ],
        frame,
        width,
      );
      const across = spacedAxis(areApart ? axisFor(own) : shared, width, fontSize);
      return {
        height: placed.height,
        above: above.height,
        layers: [
          ...barLayers(placed, across, frame, {
            labelRoom,
            valueAt: width + right - 2,
            isLabelled: areApart || isLast,
            axisTitle: textWithin(axisTitle, fontSize, width),
          }),
          ...above.layers,
        ],
      };
    }),
  };
}

/** The positions of a group's parts, px from the top. */
export interface PlacedGroups<Group> {
  readonly height: number;
  readonly groups: readonly {
    readonly group: Group;
    readonly middle: number;
    /** Of each of its bars. */
    readonly bars: readonly { readonly top: number; readonly middle: number; readonly bottom: number }[];
  }[];
}

/** A row for each bar; the bars of a group are nearer to each other than groups are. */
export function placedGroups<Group extends { readonly bars: readonly unknown[] }>(
  groups: readonly Group[],
  { fontSize, isNarrow }: Frame,
): PlacedGroups<Group> {
  const isGrouped = groups.some(({ bars }) => bars.length > 1);
  // the text of one row must not touch that of the next
  const rowHeight = isGrouped ? fontSize + 4 : isNarrow ? 22 : 24;
  const gap = isGrouped ? 10 : 0;
  const inset = isGrouped ? 2 : 4;
  let y = 0;
  const placed = groups.map((group) => {
    const top = y;
    y += group.bars.length * rowHeight + gap;
    return {
      group,
      middle: top + (group.bars.length * rowHeight) / 2,
      bars: group.bars.map((_, index) => ({
        top: top + index * rowHeight + inset,
        middle: top + (index + 0.5) * rowHeight,
        bottom: top + (index + 1) * rowHeight - inset,
      })),
    };
  });
  return { height: Math.max(rowHeight, y - gap), groups: placed };
}

/** The names of groups, or the values of their bars: `text` at its `middle`. */
export function rowTexts(
  texts: readonly { readonly text: string; readonly middle: number }[],
  at: number,
  colour: Colour,
  { paint }: Frame,
): Layer {
  return {
    data: { values: texts.map(({ text, middle }) => ({ text, middle })) },
    mark: { type: "text", align: "right", baseline: "middle", fill: paint(colour) },
    encoding: { x: { value: at }, y: pixels("middle"), text: { field: "text", type: "nominal" } },
  };
}

function barLayers(
  { groups }: PlacedGroups<BarGroup>,
  axis: ValueAxis,
  frame: Frame,
  room: {
    readonly labelRoom: number;
    readonly valueAt: number;
    readonly isLabelled: boolean;
    readonly axisTitle: string;
  },
): Layer[] {
  const { fontSize, paint } = frame;
  const { labelRoom, valueAt, isLabelled, axisTitle } = room;
  const position = positionEncoding(axis, "from", frame, { title: axisTitle || null, hasGrid: true });
  const x = isLabelled ? position : { ...position, title: null, axis: { ...position.axis, labels: false } };
  const values = groups.flatMap(({ group, bars }) =>
    bars.map((place, index) => ({ ...group.bars[index]!, ...place })),
  );
  const colours = [...new Set(values.map(({ colour }) => colour))];
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
    rowTexts(
      groups.map(({ group, middle }) => ({ text: textWithin(group.label, fontSize, labelRoom), middle })),
      -10,
      "ink",
      frame,
    ),
    rowTexts(
      values.map(({ value, middle }) => ({ text: value, middle })),
      valueAt,
      "muted",
      frame,
    ),
  ];
}
