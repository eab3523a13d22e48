import { createHash } from "node:crypto";
import type { ScanRecord } from "../../archive/write/journal.ts";
import type { Table } from "../../model/profile/table.ts";
import type { AskedRun } from "../../model/source.ts";
import { int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import { Turns } from "../../model/turns.ts";
import { lineHash } from "../../row/row-hash.ts";
import { piecesWithoutOddZeros } from "../../row/strict-line.ts";
import { segmentsOf } from "../fetch/fetch-slice.ts";
import type { FetchedSegment, OpenEnd, SliceWork } from "../fetch/slice.ts";
import type { Window } from "./held-window.ts";
import { routeOf } from "./route.ts";
import { rowKey, withoutSeq } from "./row-key.ts";
import { eachLine, isRefusal, shortestRefusedNs, timeOf } from "./table-asks.ts";

/** The bounds of a full scan's first try: none, except for the horizon of a run that has not ended. */
export function openWindow(until: Nanoseconds | undefined): Window {
  return { from: int64Min, to: until ?? int64Max };
}

/** The findings of a pass over a table. */
export interface FullScan {
  readonly record: ScanRecord;
  /** Rows, with equal lines counted once if they have no seq: the least that the table holds. */
  readonly distinctRows: number;
  /** Of the first row and the last. */
  readonly firstKey: string | undefined;
  readonly lastKey: string | undefined;
}

/**
 * Reads a whole table without storing anything, to learn what a source without storage facts holds. Its bounds are wide, or
 * none, because the pass that stores rows asks in slices: both must bring the same bytes. `windows` follow one another.
 */
export async function scanTable(
  run: AskedRun,
  table: Table,
  windows: readonly Window[],
  until: Nanoseconds | undefined,
  work: Omit<SliceWork, "countRows">,
): Promise<FullScan> {
  let hash = createHash("sha256");
  const isKeyed = routeOf(work.source, table).numbers === "given";
  let rows = 0;
  let distinctRows = 0;
  let ends: { readonly first: TimedLine; readonly last: TimedLine } | undefined;
  const keysNow = () => ({
    firstKey: ends && rowKey(table, isKeyed, ends.first.line),
    lastKey: ends && rowKey(table, isKeyed, ends.last.line),
  });
  const add = async ({ draft, text, release }: FetchedSegment) => {
    try {
      // conversion does the same to the lines that are stored
      for await (const piece of piecesWithoutOddZeros(text, table)) hash.update(piece);
      rows += draft.rows;
      distinctRows += isKeyed ? draft.rows : await distinctLines(text);
      work.seen.sawLine(table.name, draft.longestLine);
      const [first, last] = [ends?.first ?? (await firstTimed(text)), await lastTimed(text)];
      if (first !== null && last !== null) ends = { first, last };
    } finally {
      release();
    }
  };
  const openEnds: ScanRecord["openEnds"] = [];
  const slice = { run, table, bucket: "", expected: undefined };
  const passOver = async ({ from, to }: Window): Promise<void> => {
    const before = { rows, distinctRows, ends, hash: hash.copy() };
    try {
      for await (const event of segmentsOf({ ...slice, from, to }, { ...work, countRows: undefined })) {
        if (event.kind === "segment") await add(event);
        else if (event.kind === "restart") {
          ({ rows, distinctRows, ends } = before);
          hash = before.hash.copy();
        } else if (event.kind === "end" && event.openEnd !== null) openEnds.push(recordOf(event.openEnd));
      }
    } catch (error) {
      // some gateways answer at most a month at once; an unbounded window cannot be halved
      const isBounded = from > int64Min && to < int64Max;
      if (!isRefusal(error) || !isBounded || to - from <= shortestRefusedNs || rows > before.rows)
        throw error;
      const middle = from + (to - from) / 2n;
      await passOver({ from, to: middle });
      await passOver({ from: middle, to });
    }
  };
  try {
    for (const window of windows) await passOver(window);
  } catch (error) {
    // the rows of a pass that fails were sent all the same
    if (ends !== undefined) {
      const window = { from: BigInt(ends.first.time), to: BigInt(ends.last.time) + 1n };
      work.onLost?.(table.name, { ...window, rows: distinctRows, ...keysNow() });
    }
    throw error;
  }
  const record = {
    rows,
    first: ends?.first.time ?? null,
    last: ends?.last.time ?? null,
    sha256: hash.digest("hex"),
    until: until?.toString() ?? null,
    ...work.seen.answersOf(table.name),
    openEnds,
  };
  return { record, distinctRows, ...keysNow() };
}

/** How many different lines there are, apart from the seq they were given here. */
async function distinctLines(text: Buffer): Promise<number> {
  const hashes = new Set<bigint>();
  const turns = new Turns();
  for (const line of eachLine(text)) {
    if (turns.isDue(line.byteLength)) await turns.next();
    hashes.add(lineHash(withoutSeq(line.toString("latin1"))));
  }
  return hashes.size;
}

function recordOf(openEnd: OpenEnd): ScanRecord["openEnds"][number] {
  const { from, to, ahead } = openEnd;
  return { ...openEnd, from: from.toString(), to: to.toString(), ahead: ahead.map(String) };
}

interface TimedLine {
  readonly time: string;
  readonly line: string;
}

/** The ts_event of the first line that has one; null if none has. */
export async function firstTime(text: Buffer): Promise<string | null> {
  return (await firstTimed(text))?.time ?? null;
}

async function firstTimed(text: Buffer): Promise<TimedLine | null> {
  const turns = new Turns();
  for (let start = 0; start < text.byteLength; ) {
    const end = text.indexOf(newline, start);
    const line = text.toString("utf8", start, end);
    const time = timeOf(line);
    if (time !== null) return { time, line };
    if (turns.isDue(end - start)) await turns.next();
    start = end + 1;
  }
  return null;
}

/** The ts_event of the last line that has one; null if none has. */
export async function lastTime(text: Buffer): Promise<string | null> {
  return (await lastTimed(text))?.time ?? null;
}

async function lastTimed(text: Buffer): Promise<TimedLine | null> {
  const turns = new Turns();
  for (let end = text.byteLength - 1; end > 0; ) {
    const before = text.lastIndexOf(newline, end - 1);
    const line = text.toString("utf8", before + 1, end);
    const time = timeOf(line);
    if (time !== null) return { time, line };
    if (turns.isDue(end - before)) await turns.next();
    end = before;
  }
  return null;
}

const newline = 10;
