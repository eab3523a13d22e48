import type { RunJournal } from "../../archive/write/run-journal.ts";
import type { Table } from "../../model/profile/table.ts";
import { requireRoom } from "../fetch/disk-need.ts";
import { RowsAround, segmentsOf } from "../fetch/fetch-slice.ts";
import type { FetchedSegment, Slice, SliceEnd } from "../fetch/slice.ts";
import { firstTime } from "../plan/full-scan.ts";
import type { Window } from "../plan/held-window.ts";
import { routeOf } from "../plan/route.ts";
import { countSlice } from "../plan/slices.ts";
import { isRefusal, probe, shortestRefusedNs } from "../plan/table-asks.ts";
import { requireNone } from "../proof/outer-ends.ts";
import { type Extent, type Rung, rungsAround } from "../proof/rungs.ts";
import { learnSegments, letGoSegments } from "./let-go.ts";
import { asksOf, type RunContext } from "./run-context.ts";
import type { CountRows } from "./run-horizon.ts";

/** What storing a table's slices needs, and what it reports. */
export interface SliceStoring {
  readonly table: Table;
  readonly context: RunContext;
  readonly countRows: CountRows | undefined;
  /** The plan found no rows missing: its slices are for rows that are not counted yet. */
  readonly isNothingPlanned: boolean;
  readonly onDisagreement: (window: Disagreement) => void;
  /** Called with bounds around a whole table in which an answer brought its rows and no others. */
  readonly onAlone: (alone: AloneOnRung) => void;
  /** Called with the first and last time of all rows that came, if the table comes whole. */
  readonly onSeen: (seen: Extent) => void;
}

/** Bounds in which a single answer of `bytes` bytes brought a table's rows, as many as are counted, and no others. */
export interface AloneOnRung {
  readonly rung: Rung;
  /** The slice's own bounds. */
  readonly of: Window;
  readonly rows: number;
  readonly bytes: number;
}

/** A window that brought another number of rows than the gateway counted in it, before and after. */
export interface Disagreement extends Window {
  readonly rows: number;
  readonly counted: number;
}

/**
 * A slice with the gateway's row count; null if there is nothing to fetch. At the horizon of an unfinished run, counts may
 * lag behind the rows: if they show none, one row is requested.
 */
async function countedSlice(planned: Slice, storing: SliceStoring): Promise<Slice | null> {
  const { table, context, countRows, isNothingPlanned } = storing;
  const isEnd = planned.to === context.until && planned.expected === undefined;
  if (!isEnd || countRows === undefined) return await countSlice(planned, countRows);
  const counted = isNothingPlanned ? null : await countSlice(planned, countRows);
  if (counted !== null) return counted;
  return (await probe(asksOf(table, context), planned)) === undefined ? null : planned;
}

/**
 * Fetches a slice. A whole table is requested with wide bounds, so that the same answer shows its ends. A slice that the
 * gateway refuses is fetched in halves, because some gateways answer at most a month at once.
 */
export async function storeSlice(planned: Slice, signal: AbortSignal, storing: SliceStoring): Promise<void> {
  if (await storeWithinRung(planned, signal, storing)) return;
  try {
    await storeAtOnce(planned, signal, storing);
  } catch (error) {
    const { from, to } = planned;
    if (!isRefusal(error) || to - from <= shortestRefusedNs) throw error;
    await dropWithin(planned, storing);
    const middle = from + (to - from) / 2n;
    await storeSlice({ ...planned, to: middle, expected: undefined }, signal, storing);
    await storeSlice({ ...planned, from: middle, expected: undefined }, signal, storing);
  }
}

/** Fetches a whole table with wide bounds; false if that does not work and nothing is stored. */
async function storeWithinRung(planned: Slice, signal: AbortSignal, storing: SliceStoring): Promise<boolean> {
  const { context, countRows, onAlone } = storing;
  const { run, until, work } = context;
  const { from, to, expected } = planned;
  if (!expected || countRows === undefined || !work.seen.takesWideBounds) return false;
  const { bounds } = routeOf(work.source, storing.table);
  if (!bounds.from || !bounds.to) return false;
  const extent = { first: from, last: to - 1n };
  const rung = rungsAround(run, until, extent).find(({ kind }) => kind === "wide");
  if (rung === undefined) return false;
  let around: SliceEnd | undefined;
  try {
    around = await storeAtOnce({ ...planned, around: rung }, signal, storing);
  } catch (error) {
    const isRefused = isRefusal(error);
    if (isRefused) work.seen.refusedWideBounds();
    else if (!(error instanceof RowsAround)) throw error;
    await dropWithin(planned, storing);
    return false;
  }
  // a gateway that cuts down or misreads these bounds answers nothing
  if (around?.rows === 0) work.seen.refusedWideBounds();
  if (around?.isAlone) {
    onAlone({ rung, of: planned, rows: around.rows, bytes: around.bytes });
  }
  return around === undefined || around.rows > 0;
}

async function dropWithin(window: Window, { table, context }: SliceStoring): Promise<void> {
  const { segments } = context.journal.held.of(table.name);
  const within = segments.filter((segment) => liesIn(segment, window));
  await letGoSegments(table, context, within);
}

/** Returns how the slice ended; undefined if there was nothing to fetch. */
async function storeAtOnce(
  planned: Slice,
  signal: AbortSignal,
  storing: SliceStoring,
): Promise<SliceEnd | undefined> {
  const { table, context, countRows } = storing;
  const { journal, work, onRows } = context;
  const counted = await countedSlice(planned, storing);
  if (counted === null) return undefined;
  const slice = { ...counted, isFinal: context.run.final };
  const name = table.name;
  // a slice of a full scan's plan: nothing counts its rows
  const isUncounted = journal.held.of(name).fullScan !== null && slice.expected === undefined;
  let firstRow: string | null | undefined;
  let ended: SliceEnd | undefined;
  const writes: Promise<void>[] = [];
  const unjournalled: Awaited<ReturnType<RunJournal["writeSegment"]>>[] = [];
  const write = async ({ draft, text, release }: FetchedSegment) => {
    try {
      await requireRoom(journal.folder, 0);
      const segment = await journal.writeSegment(name, draft, text);
      if (draft.sorted) await journal.addSegments(name, [segment]);
      else unjournalled.push(segment);
    } finally {
      release();
    }
  };
  const dropAll = async () => {
    await Promise.all(writes);
    unjournalled.length = 0;
    firstRow = undefined;
    await dropWithin(slice, storing);
  };
  let hasFailed = false;
  const fetching = {
    ...work,
    signal,
    countRows,
    onRows: (rows: number, bytes: number) => onRows(table, rows, bytes),
  };
  try {
    for await (const event of segmentsOf(slice, fetching)) {
      if (event.kind === "restart") await dropAll();
      else if (event.kind === "end") ended = event;
      else {
        if (firstRow === undefined) firstRow = await firstTime(event.text);
        // not awaited here: the next rows come in while these are compressed and synced
        const writing = write(event);
        writing.catch(() => {
          hasFailed = true;
        });
        writes.push(writing);
        if (hasFailed) break;
      }
    }
  } finally {
    await Promise.allSettled(writes);
  }
  await Promise.all(writes);
  if (unjournalled.length > 0) await journal.addSegments(name, unjournalled);
  if (ended?.seen !== undefined) storing.onSeen(ended.seen);
  const rows = ended?.rows ?? 0;
  // the caller tries again without the wide bounds if they brought nothing
  if (slice.around !== undefined && rows === 0) return ended;
  if (rows !== slice.expected) await holdAgainstCount(slice, rows, storing);
  const canAsk = routeOf(work.source, table).bounds.from;
  if (canAsk && isUncounted && firstRow != null && BigInt(firstRow) > slice.from) {
    await requireNothingIn({ from: slice.from, to: BigInt(firstRow) }, storing);
  }
  return ended;
}

/** Counts a window again that brought another number of rows than it was counted to have. */
async function holdAgainstCount(
  { from, to, expected }: Slice,
  rows: number,
  storing: SliceStoring,
): Promise<void> {
  const { table, context, countRows, onDisagreement } = storing;
  if (expected === undefined || countRows === undefined) return;
  const counted = await countRows(from, to);
  if (counted === rows) return;
  const window = { from, to, rows, counted };
  onDisagreement(window);
  const { journal } = context;
  const doubted = journal.held.of(table.name).segments.filter((segment) => liesIn(segment, window));
  // a job that continues without them has to know that their rows came
  await learnSegments(table, context, doubted);
  await journal.doubtSegments(table.name, doubted);
}

/** Requires that there are no rows before a slice's first: a cap may keep the newest. */
async function requireNothingIn(window: Window, { table, context }: SliceStoring): Promise<void> {
  await requireNone(asksOf(table, context), window);
}

/** True if it lies entirely within a window. */
export function liesIn(
  { from, to }: { readonly from: bigint | string; readonly to: bigint | string },
  window: Window,
): boolean {
  return BigInt(from) >= window.from && BigInt(to) <= window.to;
}
