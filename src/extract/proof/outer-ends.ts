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
  /** A row outside of the extent that was taken for the table's; undefined where none lies there. */
  readonly outside: ProbedRow | undefined;
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
  if (atFirst.ts !== undefined && atFirst.ts < first) return { rung, outside: atFirst };
  const atLast = await probe(asks, { from: last, to });
  if (atLast === undefined || (atLast.ts !== undefined && atLast.ts > last)) return undefined;
  const ends = await rowAround(asks, rung, { first, last });
  if (ends === undefined) return undefined;
  if (areBoundsSent(asks)) seen.countRung(rung.kind, first - from);
  return { rung, outside: ends.row };
}

/** True where both bounds are sent, so that what an answer brings says something of them. */
export function areBoundsSent({ source, table }: TableAsks): boolean {
  const { bounds } = routeOf(source, table);
  return bounds.from && bounds.to;
}

/** A row outside of the extent on the rung, if there is one; undefined where to know takes too many questions. */
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

/** The first row that a source gives in one of some windows. */
async function rowIn(asks: TableAsks, windows: readonly Window[]): Promise<ProbedRow | undefined> {
  for (const window of windows) {
    const row = await probe(asks, window);
    if (row !== undefined) return row;
  }
  return undefined;
}

/** Throws as `rowsOutside` says where a source gives a row in a window. */
export async function requireNone(asks: TableAsks, window: Window): Promise<void> {
  const row = await probe(asks, window);
  if (row !== undefined) throw rowsOutside(window, row);
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
    "no time bounds around the table bring its own first and last row, so nothing shows whether rows lie outside them",
    { hint: "Ask the gateway's operator which time bounds it answers: a day around the run is needed." },
  );
}

/** Rows turned up in a window, such as this one, that are not among those that are here; or one of which nobody knows. */
export function rowsOutside(window: Window, row?: ProbedRow): RunvaultError {
  if (row !== undefined && row.ts === undefined) {
    const why = readBadRow(row.line)?.reason ?? rowText(row.line);
    return new RunvaultError(
      "malformed_row",
      `the gateway has a row in ${windowText(window)} whose time cannot be read, so nothing shows whether it is here: ${why}`,
      {
        hint: "Have the gateway's operator correct the row's time, which needs its zone where it is text, or correct the unit of ts_event in the profile.",
      },
    );
  }
  return new RunvaultError(
    "incomplete",
    `the gateway has rows in ${windowText(window)} that were missing from its answers or its counts`,
    { hint: "Run the same command again; if it stays so, ask the gateway's operator which is right." },
  );
}
