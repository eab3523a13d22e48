import { formatTime, int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";
import type { RunDescription } from "../run/run-description.ts";

/**
 * How far around a run to look: from 1970 to 2100, a day around the run, or the same in windows of a day, for gateways
 * that limit the length of a window.
 */
export type RungKind = "wide" | "run" | "days";

/** Bounds far outside a run's rows; never the ends of int64, which some gateways read as no bound. */
export interface Rung extends Window {
  readonly kind: RungKind;
  /** The longest window to request; undefined if everything may be requested at once. */
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
 * The rungs around a run and around its known rows, widest first; up to the horizon if the run goes on. `now` is the
 * gateway's clock: rungs near the run end there, because some gateways refuse bounds in the future.
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

/** The most windows to request one by one. */
const mostPieces = 100n;

/** A window in pieces of this length; undefined if there would be too many. */
export function piecesOf({ from, to }: Window, stepNs: Nanoseconds | undefined): Window[] | undefined {
  if (from >= to) return [];
  if (stepNs === undefined) return [{ from, to }];
  if ((to - from) / stepNs >= mostPieces) return undefined;
  const pieces: Window[] = [];
  for (let at = from; at < to; at += stepNs)
    pieces.push({ from: at, to: at + stepNs < to ? at + stepNs : to });
  return pieces;
}

/** A window for people: midnights are shown as dates. */
export function windowText({ from, to }: Window): string {
  const short = (time: Nanoseconds) => formatTime(time).replace("T00:00:00.000000000Z", "");
  return `[${short(from)}, ${short(to)})`;
}
