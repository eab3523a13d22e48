import { RunvaultError } from "../../model/error.ts";
import type { Window } from "../plan/held-window.ts";
import { routeOf } from "../plan/route.ts";
import { isRefusal, probe, type TableAsks } from "../plan/table-asks.ts";
import { type Extent, piecesOf, type Rung, windowText } from "./rungs.ts";
import type { SeenSource } from "./seen-source.ts";

/** What is known of a table's ends on a rung that counted. */
export interface ShownEnds {
  readonly rung: Rung;
  /** True when rows lie outside of the extent that was taken for the table's. */
  readonly isOutside: boolean;
}

/**
 * Looks for rows outside of a table's extent. A rung counts only where it brings the first row at the end of a window and
 * the last at the beginning of one: a gateway may refuse wide bounds, cut them down or misread them, and then answers
 * nothing to anything. Undefined where no rung counts.
 */
export async function showEnds(
  asks: TableAsks,
  rungs: readonly Rung[],
  extent: Extent,
  seen: SeenSource,
): Promise<ShownEnds | undefined> {
  const { bounds } = routeOf(asks.source, asks.table);
  // bounds that are not sent show nothing
  if (!bounds.from) return undefined;
  const counted = (rung: Rung) => Number(seen.reachOf(rung.kind) === undefined);
  // what this source has not refused first; the sort is stable
  for (const rung of [...rungs].sort((a, b) => counted(a) - counted(b))) {
    try {
      const shown = await onRung(asks, rung, extent, seen);
      if (shown !== undefined) return shown;
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return undefined;
}

async function onRung(
  asks: TableAsks,
  rung: Rung,
  { first, last }: Extent,
  seen: SeenSource,
): Promise<ShownEnds | undefined> {
  const { stepNs } = rung;
  // the first row at the end of a window, which is no longer for it
  const nearest = stepNs === undefined ? rung.from : first + 1n - stepNs;
  const from = nearest > rung.from ? nearest : rung.from;
  const to = stepNs !== undefined && last + stepNs < rung.to ? last + stepNs : rung.to;
  const atFirst = await probe(asks, { from, to: first + 1n });
  if (atFirst === undefined) return undefined;
  if (atFirst.ts !== undefined && atFirst.ts < first) return { rung, isOutside: true };
  const atLast = await probe(asks, { from: last, to });
  if (atLast === undefined || (atLast.ts !== undefined && atLast.ts > last)) return undefined;
  const isEmpty = await areEndsEmpty(asks, rung, { first, last });
  if (isEmpty === undefined) return undefined;
  if (areBoundsSent(asks)) seen.countRung(rung.kind, first - from);
  return { rung, isOutside: !isEmpty };
}

/** True where both bounds are sent, so that what an answer brings says something of them. */
export function areBoundsSent({ source, table }: TableAsks): boolean {
  const { bounds } = routeOf(source, table);
  return bounds.from && bounds.to;
}

/** True when nothing lies outside of the extent on the rung; undefined where that takes too many questions. */
export async function areEndsEmpty(
  asks: TableAsks,
  rung: Rung,
  { first, last }: Extent,
): Promise<boolean | undefined> {
  const head = piecesOf({ from: rung.from, to: first }, rung.stepNs);
  const tail = piecesOf({ from: last + 1n, to: rung.to }, rung.stepNs);
  if (head === undefined || tail === undefined) return undefined;
  return !(await isAnyIn(asks, [...head, ...tail]));
}

/** True when a source gives a row in one of some windows. */
export async function isAnyIn(asks: TableAsks, windows: readonly Window[]): Promise<boolean> {
  for (const window of windows) if ((await probe(asks, window)) !== undefined) return true;
  return false;
}

/**
 * The first rung that a source takes, and whether it gives rows there; undefined where it takes none of them. Each rung is
 * asked for in windows no longer than were seen to be answered to their end.
 */
export async function firstTaken(
  asks: TableAsks,
  rungs: readonly Rung[],
  seen: SeenSource,
): Promise<{ readonly rung: Rung; readonly isFilled: boolean } | undefined> {
  for (const rung of rungs) {
    const pieces = piecesOf(rung, seen.longestOn(rung));
    if (pieces === undefined) continue;
    try {
      return { rung, isFilled: await isAnyIn(asks, pieces) };
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return undefined;
}

export function endsNotShown(): RunvaultError {
  return new RunvaultError(
    "unverified",
    "no time bounds around the table bring its own first and last row, so nothing shows whether rows lie outside them",
    { hint: "Ask the gateway's operator which time bounds it answers: a day around the run is needed." },
  );
}

export function rowsOutside(window: Window): RunvaultError {
  return new RunvaultError(
    "incomplete",
    `the gateway has rows in ${windowText(window)} that were missing from its answers or its counts`,
    { hint: "Run the same command again; if it stays so, ask the gateway's operator which is right." },
  );
}
