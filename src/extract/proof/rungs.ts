import { formatTime, int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";
import type { RunDescription } from "../run/run-description.ts";

/**
 * How far out is asked: from 1970 to 2100, for a day around the run, or the same by windows of a day, for gateways that
 * answer only so much at once.
 */
export type RungKind = "wide" | "run" | "days";

/** Bounds far outside of a run's rows; never the ends of int64, which some gateways take for no time at all. */
export interface Rung extends Window {
  readonly kind: RungKind;
  /** The longest window to ask for; undefined where all may be asked for at once. */
  readonly stepNs: Nanoseconds | undefined;
}

/** The first and the last ts_event of some rows. */
export interface Extent {
  readonly first: Nanoseconds;
  readonly last: Nanoseconds;
}

export const day = 86_400_000_000_000n;
const year2100 = 4_102_444_800_000_000_000n;

/**
 * The rungs around a run, widest first, that lie around the rows known as well; up to the horizon where it goes on. `now`
 * is the gateway's clock: those near the run end there, too, for some refuse a bound in the future.
 */
export function rungsAround(
  run: Pick<RunDescription, "started" | "ended">,
  until: Nanoseconds | undefined,
  extent: Extent | undefined,
  now?: Nanoseconds,
): Rung[] {
  const wide: Rung = { kind: "wide", from: 0n, to: until ?? year2100, stepNs: undefined };
  const rungs = [wide];
  const times = [run.started, run.ended, extent?.first, extent?.last].filter((time) => time !== undefined);
  if (times.length > 0) {
    const first = times.reduce((a, b) => (a < b ? a : b)) - day;
    const last = times.reduce((a, b) => (a > b ? a : b)) + day;
    const from = first > int64Min ? first : int64Min + 1n;
    const to = until ?? (last < int64Max ? last : int64Max - 1n);
    const ends = until === undefined && now !== undefined && now < to ? [to, now] : [to];
    for (const to of ends)
      rungs.push({ kind: "run", from, to, stepNs: undefined }, { kind: "days", from, to, stepNs: day });
  }
  return rungs.filter(
    ({ from, to }) => from < to && (extent === undefined || (from < extent.first && extent.last < to)),
  );
}

/** More windows than this are not asked for one by one. */
const mostPieces = 100n;

/** A window in pieces of a length; undefined where they would be too many. */
export function piecesOf({ from, to }: Window, stepNs: Nanoseconds | undefined): Window[] | undefined {
  if (from >= to) return [];
  if (stepNs === undefined) return [{ from, to }];
  if ((to - from) / stepNs >= mostPieces) return undefined;
  const pieces: Window[] = [];
  for (let at = from; at < to; at += stepNs)
    pieces.push({ from: at, to: at + stepNs < to ? at + stepNs : to });
  return pieces;
}

/** A window for people: days without their midnights. */
export function windowText({ from, to }: Window): string {
  const short = (time: Nanoseconds) => formatTime(time).replace("T00:00:00.000000000Z", "");
  return `[${short(from)}, ${short(to)})`;
}
