import type { TimeUnit } from "../../model/profile/row-map.ts";
import { floorDivide, formatTime, type Nanoseconds, type TimeBounds } from "../../model/time.ts";
import type { RestRequest } from "../profile/profile.ts";

/** Nanoseconds of a unit; RFC 3339 can say each. */
export const nsOfUnit: Readonly<Record<TimeUnit, bigint>> = {
  ns: 1n,
  us: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  rfc3339: 1n,
};

/** The finest difference between two bounds, in nanoseconds. */
export function stepOf({ unit, step }: RestRequest["times"]): bigint {
  return nsOfUnit[step ?? unit];
}

const decimals = { ns: 9, us: 6, ms: 3, s: 0 } as const;

/** An instant as a bound is written, rounded down to its step: RFC 3339 with as many decimals as the gateway reads. */
export function boundText(ns: Nanoseconds, times: RestRequest["times"]): string {
  const step = stepOf(times);
  const count = floorDivide(ns, step);
  if (times.unit !== "rfc3339") return count.toString();
  const text = formatTime(count * step).slice(0, -1);
  const most = decimals[times.step ?? "ns"];
  return `${most === 0 ? text.slice(0, -10) : text.slice(0, text.length - 9 + most)}Z`;
}

/** Bounds as sent to a gateway, and what must be clipped from its rows. */
export interface WrittenBounds {
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** Rows below `from` and not below this came from widening; undefined if exactly `from` was requested. */
  readonly clipFrom: ClipSide | undefined;
  /** The same for rows from `to` on. */
  readonly clipTo: ClipSide | undefined;
}

/** Rows between a bound and the widened one; without an end, any distance. */
export interface ClipSide {
  readonly bound: Nanoseconds;
  readonly farthest: Nanoseconds | undefined;
}

/**
 * Writes bounds in a request's own unit. A bound that the unit cannot express is widened by less than a unit. One
 * without a parameter is not sent; the rows beyond it come and are clipped.
 */
export function writeBounds(
  { parameters, times }: Pick<RestRequest, "parameters" | "times">,
  { from, to }: TimeBounds,
): WrittenBounds {
  const unit = stepOf(times);
  const write = (count: bigint) => boundText(count * unit, times);
  let fromText: string | undefined;
  let clipFrom: ClipSide | undefined;
  if (from !== undefined && parameters.from === undefined) clipFrom = { bound: from, farthest: undefined };
  else if (from !== undefined) {
    const count = times.from === "inclusive" ? floorDivide(from, unit) : floorDivide(from - 1n, unit);
    const asked = count * unit + (times.from === "inclusive" ? 0n : 1n);
    fromText = write(count);
    if (asked < from) clipFrom = { bound: from, farthest: from - unit + 1n };
  }
  let toText: string | undefined;
  let clipTo: ClipSide | undefined;
  if (to !== undefined && parameters.to === undefined) clipTo = { bound: to, farthest: undefined };
  else if (to !== undefined) {
    const count = times.to === "exclusive" ? ceilDivide(to, unit) : ceilDivide(to - 1n, unit);
    const asked = count * unit + (times.to === "exclusive" ? 0n : 1n);
    toText = write(count);
    if (asked > to) clipTo = { bound: to, farthest: to + unit - 1n };
  }
  return { from: fromText, to: toText, clipFrom, clipTo };
}

function ceilDivide(a: bigint, b: bigint): bigint {
  return -floorDivide(-a, b);
}

/** Bounds that a route takes. */
export function boundsTaken({ parameters }: Pick<RestRequest, "parameters">) {
  return { from: parameters.from !== undefined, to: parameters.to !== undefined };
}
