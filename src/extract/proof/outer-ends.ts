import { RunvaultError } from "../../model/error.ts";
import { rowText } from "../../model/text/operator-text.ts";
import { readBadRow } from "../../row/bad-row.ts";
import type { Window } from "../plan/held-window.ts";
import { routeOf } from "../plan/route.ts";
import { isRefusal, type ProbedRow, probe, type TableAsks } from "../plan/table-asks.ts";
import { type Extent, piecesOf, type Rung, windowText } from "./rungs.ts";
import type { SeenSource } from "./seen-source.ts";

/** What a counted step shows about a table's ends. */
export interface ShownEnds {
  readonly rung: Rung;
  /** A row outside the extent that the table was believed to have; undefined if there is none. */
  readonly outside: ProbedRow | undefined;
}

/**
 * Looks for rows outside a table's extent. A rung counts only if it returns the first row at the end of a window and
 * the last at the beginning of one: a gateway may refuse wide bounds, narrow them or misread them, and then returns
 * nothing whatever there is. Undefined if no rung counts.
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
  // first the rungs that this source has not refused; the sort is stable
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
  // the window is not made longer to have the first row at its end
  const nearest = stepNs === undefined ? rung.from : first + 1n - stepNs;
  const from = nearest > rung.from ? nearest : rung.from;
  const to = stepNs !== undefined && last + stepNs < rung.to ? last + stepNs : rung.to;
  const atFirst = await probe(asks, { from, to: first + 1n });
  if (atFirst === undefined) return undefined;
  if (atFirst.ts !== undefined && atFirst.ts < first) return { rung, outside: atFirst };
  const atLast = await probe(asks, { from: last, to });
  if (atLast === undefined || (atLast.ts !== undefined && atLast.ts > last)) return undefined;
  const ends = await rowAround(asks, rung, { first, last });
  if (ends === undefined) return undefined;
  if (areBoundsSent(asks)) seen.countRung(rung.kind, first - from);
  return { rung, outside: ends.row };
}

/** True if both bounds are sent, so that an answer shows whether they work. */
export function areBoundsSent({ source, table }: TableAsks): boolean {
  const { bounds } = routeOf(source, table);
  return bounds.from && bounds.to;
}

/** A row outside the extent on the rung, if there is one; undefined if finding out takes too many requests. */
export async function rowAround(
  asks: TableAsks,
  rung: Rung,
  { first, last }: Extent,
): Promise<{ readonly row: ProbedRow | undefined } | undefined> {
  const head = piecesOf({ from: rung.from, to: first }, rung.stepNs);
  const tail = piecesOf({ from: last + 1n, to: rung.to }, rung.stepNs);
  if (head === undefined || tail === undefined) return undefined;
  return { row: await rowIn(asks, [...head, ...tail]) };
}

/** The first row that a source returns in any of these windows. */
async function rowIn(asks: TableAsks, windows: readonly Window[]): Promise<ProbedRow | undefined> {
  for (const window of windows) {
    const row = await probe(asks, window);
    if (row !== undefined) return row;
  }
  return undefined;
}

/** Throws `rowsOutside` if a source returns a row in a window. */
export async function requireNone(asks: TableAsks, window: Window): Promise<void> {
  const row = await probe(asks, window);
  if (row !== undefined) throw rowsOutside(window, row);
}

/**
 * The first rung that a source accepts, and whether it returns rows there; undefined if it accepts none. Each rung is
 * requested in windows no longer than those known to be answered to their end.
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
      return { rung, isFilled: (await rowIn(asks, pieces)) !== undefined };
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return undefined;
}

export function endsNotShown(): RunvaultError {
  return new RunvaultError(
    "unverified",
    "no time bounds around the table return its first and last row, so it is not known whether rows lie outside them",
    { hint: "Ask the gateway's operator which time bounds it accepts: a day around the run is needed." },
  );
}

/** The error for rows in a window, such as this one, that are not here, or whose time cannot be read. */
export function rowsOutside(window: Window, row?: ProbedRow): RunvaultError {
  if (row !== undefined && row.ts === undefined) {
    const why = readBadRow(row.line)?.reason ?? rowText(row.line);
    return new RunvaultError(
      "malformed_row",
      `the gateway has a row in ${windowText(window)} whose time cannot be read, so it is not known whether it is here: ${why}`,
      {
        hint: "Have the gateway's operator correct the row's time (text needs a time zone), or correct the unit of ts_event in the profile.",
      },
    );
  }
  return new RunvaultError(
    "incomplete",
    `the gateway has rows in ${windowText(window)} that were missing from its answers or its counts`,
    { hint: "Run the same command again; if it happens again, ask the gateway's operator which is right." },
  );
}
