import type { TableManifest } from "../../archive/manifest/manifest.ts";
import type { ScanRecord } from "../../archive/write/journal.ts";
import type { Table } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { type FullScan, openWindow, scanTable } from "../plan/full-scan.ts";
import type { Window } from "../plan/held-window.ts";
import { routeOf } from "../plan/route.ts";
import { isRefusal } from "../plan/table-asks.ts";
import { isUnavailable } from "../proof/absent-table.ts";
import { firstTaken, rowsOutside, showEnds } from "../proof/outer-ends.ts";
import { type Extent, piecesOf, type Rung, rungsAround } from "../proof/rungs.ts";
import { asksOf, type RunContext } from "./run-context.ts";

/** What passes over a table have found so far: the mutable part of a scan. */
export interface ScanFindings {
  rows: number;
  /** The rows of the largest pass, even if it failed, and the earliest ts_event of a pass that ended. */
  came: { readonly rows: number; readonly first: string | null };
  /** The rung on which the full scan's ends were shown to be empty. */
  rung: Rung | undefined;
}

/** A table that only a pass over all of it can describe. */
export interface Scan {
  readonly table: Table;
  readonly context: RunContext;
  readonly former: TableManifest | undefined;
  readonly found: ScanFindings;
}

/**
 * Passes over a whole table; `absent` if the first answer says that there is no such table. A gateway that answers at most
 * a month may refuse an open bound, or take it for 1970 and answer nothing: then a second pass uses bounds around proven
 * rows, or around the run.
 */
export async function scanAll(scan: Scan): Promise<ScanRecord | "absent"> {
  const { context, found } = scan;
  const { run, until, work } = context;
  const open = openWindow(until);
  try {
    let refusal: unknown;
    const fullScan = await pass([open], scan).catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
      refusal = error;
    });
    const comesWhole = !routeOf(work.source, scan.table).bounds.from;
    if (fullScan !== undefined && (fullScan.rows > 0 || comesWhole)) return fullScan;
    if (comesWhole) throw refusal;
    const known = await rungOfKnown(scan);
    if (known !== undefined) return await passOverRows(known, true, scan);
    const isNearWanted = refusal !== undefined || until !== undefined;
    const rungs = isNearWanted ? rungsAround(run, until, undefined, work.source.now?.()) : [];
    const near = rungs.find(({ kind }) => kind === "run");
    if (near === undefined && refusal !== undefined) throw refusal;
    // an answer cut off before its first row looks like an empty table, and no storing pass follows one: ask again
    return await pass([near ?? open], scan);
  } catch (error) {
    if (found.rows > 0 || !isUnavailable(error)) throw error;
    return "absent";
  }
}

/**
 * The rung around proven rows on which the gateway still gives some: without bounds it may not give all. Undefined if it
 * gives none, or nothing was proven.
 */
async function rungOfKnown(scan: Scan): Promise<Rung | undefined> {
  const { table, context, former } = scan;
  const { run, until, work } = context;
  const { first, last } = former?.proven?.certificate ?? {};
  const extent = extentOf({ first: first?.ts, last: last?.ts });
  if (extent === undefined) return undefined;
  for (const rung of rungsAround(run, until, extent, work.source.now?.())) {
    if ((await firstTaken(asksOf(table, context), [rung], work.seen))?.isFilled) return rung;
  }
  return undefined;
}

/** Passes over a rung known to hold rows, in windows of a length that is known to be answered. */
export async function passOverRows(rung: Rung, isWidened: boolean, scan: Scan): Promise<ScanRecord> {
  const { context } = scan;
  const windows = piecesOf(rung, context.work.seen.longestOn(rung)) ?? [rung];
  const fullScan = await pass(windows, scan, isWidened);
  if (fullScan.rows === 0) throw rowsOutside(rung);
  return fullScan;
}

/** Passes over windows; if rows turn up outside what it found, passes again over bounds that include them. */
async function pass(windows: readonly Window[], scan: Scan, isWidened = false): Promise<ScanRecord> {
  const { table, context, found } = scan;
  const { journal, until, run, work, slices, onScanned } = context;
  const { came } = found;
  let passed = 0;
  const onRows = (rows: number, bytes: number) => {
    found.rows += rows;
    passed += rows;
    found.came = { rows: Math.max(came.rows, passed), first: found.came.first };
    onScanned(table, rows, bytes);
  };
  // nothing counts what was held so far: only a pass over all of it can tell
  const scanned = await slices.add(() => scanTable(run, table, windows, until, { ...work, onRows }));
  const fullScan = scanned.record;
  learnScan(context, table, scanned);
  const extent = extentOf(fullScan);
  if (extent !== undefined && (came.first === null || extent.first < BigInt(came.first)))
    found.came = { ...found.came, first: extent.first.toString() };
  // requesting a table that comes whole again shows nothing more
  if (extent !== undefined && routeOf(work.source, table).bounds.from) {
    const rungs = rungsAround(run, until, extent, work.source.now?.());
    const shown = await slices.add(() => showEnds(asksOf(table, context), rungs, extent, work.seen));
    // rows outside the second pass as well are reported once the rows are here
    if (shown?.outside !== undefined && !isWidened) return await passOverRows(shown.rung, true, scan);
    found.rung = shown?.outside === undefined ? shown?.rung : undefined;
  }
  await journal.setScan(table.name, fullScan);
  return fullScan;
}

/** A pass stores nothing, but no fewer rows than it brought may be stored later. */
function learnScan({ evidence }: RunContext, { name }: Table, scan: FullScan): void {
  const { first, last } = scan.record;
  if (first === null || last === null) return;
  const { distinctRows: rows, firstKey, lastKey } = scan;
  evidence.of(name).begins(BigInt(first));
  evidence.sent(name, { from: BigInt(first), to: BigInt(last) + 1n, rows, firstKey, lastKey });
}

/** First and last time of rows; undefined if there are none. */
export function extentOf(
  ends:
    | {
        readonly first?: Nanoseconds | string | null | undefined;
        readonly last?: Nanoseconds | string | null | undefined;
      }
    | null
    | undefined,
): Extent | undefined {
  if (ends?.first == null || ends.last == null) return undefined;
  return { first: BigInt(ends.first), last: BigInt(ends.last) };
}
