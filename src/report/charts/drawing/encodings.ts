import type { Field, PositionFieldDef } from "vega-lite/types_unstable/channeldef.js";
import type { Frame } from "./frame.ts";
import type { TimeAxis } from "./time-axis.ts";
import type { ValueAxis } from "./value-axis.ts";

/**
 * The data's field, in UNIX milliseconds, on the axis of time. To vega it is a number, so that no time zone matters.
 * `isLabelled` is false for a plot above another with the same axis.
 */
export function timeEncoding(
  axis: TimeAxis,
  field: string,
  { paint }: Frame,
  isLabelled = true,
): PositionFieldDef<Field> {
  return {
    field,
    type: "quantitative",
    scale: { type: "linear", domain: [...axis.domain], nice: false, zero: false },
    stack: null,
    title: null,
    axis: isLabelled
      ? {
          values: [...axis.values],
          labelExpr: axis.labelExpr,
          domain: true,
          domainColor: paint("line"),
          ticks: true,
          tickSize: 4,
          tickColor: paint("line"),
        }
      : null,
  };
}

/** The data's field unscaled, in px from the left or the top of the plot. */
export function pixels(field: string): PositionFieldDef<Field> {
  return { field, type: "quantitative", scale: null, axis: null, stack: null };
}

/** The data's field on a horizontal axis of numbers below the plot. */
export function positionEncoding(
  axis: ValueAxis,
  field: string,
  { paint }: Frame,
  { title = null, hasGrid = false }: { title?: string | null; hasGrid?: boolean } = {},
): PositionFieldDef<Field> {
  return {
    field,
    type: "quantitative",
    scale: { type: axis.type, domain: [...axis.domain], nice: false, ...zeroOf(axis) },
    stack: null,
    title,
    axis: {
      values: [...axis.values],
      labelExpr: axis.labelExpr,
      grid: hasGrid,
      gridColor: paint("line"),
      domain: !hasGrid,
      domainColor: paint("line"),
      ticks: !hasGrid,
      tickSize: 4,
      tickColor: paint("line"),
    },
  };
}

/** The data's field on an axis of numbers, with a hairline at each tick, darker at zero. */
export function valueEncoding(
  axis: ValueAxis,
  field: string,
  { paint }: Frame,
  title: string | null = null,
): PositionFieldDef<Field> {
  return {
    field,
    type: "quantitative",
    scale: { type: axis.type, domain: [...axis.domain], nice: false, ...zeroOf(axis) },
    stack: null,
    title,
    axis: {
      values: [...axis.values],
      labelExpr: axis.labelExpr,
      grid: true,
      gridColor: {
        condition: { test: "datum.value === 0", value: paint("muted") },
        value: paint("line"),
      },
    },
  };
}

/** A logarithmic scale has no zero to leave out. */
function zeroOf({ type }: ValueAxis): { zero?: false } {
  return type === "log" ? {} : { zero: false };
}
