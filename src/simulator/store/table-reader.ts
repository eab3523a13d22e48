import { type FileHandle, open } from "node:fs/promises";
import { RunvaultError } from "../../model/error.ts";
import { isWithin, type TimeBounds } from "../../model/time.ts";
import { refuseWhenAborted } from "../../model/usual-errors.ts";
import type { Block, TableIndex } from "./table-index.ts";

const readBytes = 1_048_576;
const lineEnd = 10;
const eventMark = Buffer.from('"ts_event":"');
const initMark = Buffer.from('"ts_init":"');

export interface RowCount {
  readonly rows: number;
  readonly first: bigint | undefined;
  readonly last: bigint | undefined;
}

export interface LineSelection {
  readonly bounds: TimeBounds;
  /** Only rows known by this time; undefined for all. */
  readonly known: bigint | undefined;
  /** Only rows not yet known at this time. */
  readonly unknown?: bigint | undefined;
  /** Fields and values that a line must have. */
  readonly filters: readonly (readonly [field: string, value: string])[];
  /** The most lines to read; undefined for all. */
  readonly limit: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A rendered table: its file of lines in key order and its sparse index. */
export interface TableReader {
  /** The rows within the bounds that are known by `known`. Reads only blocks at the bounds and partly known ones. */
  count(bounds: TimeBounds, known: bigint | undefined): Promise<RowCount>;
  /** The selected lines, in arbitrary chunks. Unfiltered and fully known blocks are passed on unchanged. */
  lines(selection: LineSelection): AsyncGenerator<Buffer>;
  /** The last `count` filtered lines known by `known`, in key order, without line ends. */
  tail(count: number, selection: Pick<LineSelection, "known" | "filters">): Promise<string[]>;
}

/** A reader of a data file and its index. Each call opens and closes the files. */
export function tableReader(dataFile: string, index: TableIndex): TableReader {
  const { length } = index;
  return {
    async count(bounds, known) {
      const span = candidates(index, bounds);
      let rows = 0;
      let first: bigint | undefined;
      let last: bigint | undefined;
      if (span.from >= span.to) return { rows, first, last };
      await using file = await open(dataFile);
      for (let position = span.from; position < span.to; position += 1) {
        const block = index.block(position);
        if (known !== undefined && block.firstInit > known) continue;
        if (liesWithin(block, bounds) && isKnown(block, known)) {
          const run = known === undefined ? lastWithin(index, position, span.to, bounds) : position;
          const end = index.block(run);
          rows += end.endRow - block.row;
          first ??= block.firstEvent;
          last = end.lastEvent;
          position = run;
          continue;
        }
        const bytes = await readRange(file, block.offset, block.endOffset, dataFile);
        for (const [start, end] of linesOf(bytes)) {
          const event = timeIn(bytes, start, end, eventMark);
          if (
            !isWithin(event, bounds) ||
            (known !== undefined && timeIn(bytes, start, end, initMark) > known)
          )
            continue;
          rows += 1;
          first ??= event;
          last = event;
        }
      }
      return { rows, first, last };
    },

    async *lines({ bounds, known, unknown, filters, limit, signal }) {
      const span = candidates(index, bounds);
      if (span.from >= span.to || limit === 0) return;
      await using file = await open(dataFile);
      const lastBlock = index.block(length - 1);
      const needles = needlesOf(filters);
      const plain =
        needles.length === 0 &&
        unknown === undefined &&
        (known === undefined || everyKnown(index, span, known));
      if (plain) {
        const start = await lineAt(file, dataFile, index.block(span.from), bounds.from);
        let end =
          bounds.to === undefined
            ? { offset: lastBlock.endOffset, row: lastBlock.endRow }
            : await lineAt(file, dataFile, index.block(span.to - 1), bounds.to);
        if (limit !== undefined && start.row + limit < end.row) {
          end = await rowAt(file, dataFile, index, start.row + limit);
        }
        yield* readStretch(file, dataFile, start.offset, end.offset, signal);
        return;
      }
      let left = limit ?? Number.POSITIVE_INFINITY;
      for (let position = span.from; position < span.to && left > 0; position += 1) {
        refuseWhenAborted(signal);
        const block = index.block(position);
        if (known !== undefined && block.firstInit > known) continue;
        if (unknown !== undefined && block.lastInit <= unknown) continue;
        const bytes = await readRange(file, block.offset, block.endOffset, dataFile);
        const whole =
          needles.length === 0 &&
          liesWithin(block, bounds) &&
          isKnown(block, known) &&
          (unknown === undefined || block.firstInit > unknown);
        if (whole && block.endRow - block.row <= left) {
          left -= block.endRow - block.row;
          yield bytes;
          continue;
        }
        // selected lines are moved to the front of the block's own buffer
        let kept = 0;
        for (const [start, end] of linesOf(bytes)) {
          if (left <= 0) break;
          if (!isWithin(timeIn(bytes, start, end, eventMark), bounds)) continue;
          if (known !== undefined && timeIn(bytes, start, end, initMark) > known) continue;
          if (unknown !== undefined && timeIn(bytes, start, end, initMark) <= unknown) continue;
          const line = bytes.subarray(start, end);
          if (!needles.every((needle) => line.includes(needle))) continue;
          bytes.copyWithin(kept, start, end);
          kept += end - start;
          left -= 1;
        }
        if (kept > 0) yield bytes.subarray(0, kept);
      }
    },

    async tail(count, { known, filters }) {
      const span = candidates(index, { to: known === undefined ? undefined : known + 1n });
      if (span.from >= span.to || count === 0) return [];
      await using file = await open(dataFile);
      const needles = needlesOf(filters);
      const found: string[] = [];
      for (let position = span.to - 1; position >= span.from && found.length < count; position -= 1) {
        const block = index.block(position);
        if (known !== undefined && block.firstInit > known) continue;
        const bytes = await readRange(file, block.offset, block.endOffset, dataFile);
        const ofBlock: string[] = [];
        for (const [start, end] of linesOf(bytes)) {
          if (known !== undefined && timeIn(bytes, start, end, initMark) > known) continue;
          const line = bytes.subarray(start, end - 1);
          if (needles.every((needle) => line.includes(needle))) ofBlock.push(line.toString("utf8"));
        }
        for (const line of ofBlock.reverse()) found.push(line);
      }
      return found.slice(0, count).reverse();
    },
  };
}

/** Texts that lines must contain to pass the filters. */
function needlesOf(filters: LineSelection["filters"]): Buffer[] {
  return filters.map(([field, value]) => Buffer.from(`,"${field}":${JSON.stringify(value)},`));
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The blocks that may hold rows within the bounds. */
function candidates(index: TableIndex, { from, to }: TimeBounds): Span {
  return {
    from: from === undefined ? 0 : index.firstWhere((block) => block.lastEvent >= from),
    to: to === undefined ? index.length : index.firstWhere((block) => block.firstEvent >= to),
  };
}

function liesWithin(block: Block, { from, to }: TimeBounds): boolean {
  return (from === undefined || block.firstEvent >= from) && (to === undefined || block.lastEvent < to);
}

function isKnown(block: Block, known: bigint | undefined): boolean {
  return known === undefined || block.lastInit <= known;
}

function everyKnown(index: TableIndex, span: Span, known: bigint): boolean {
  for (let position = span.to - 1; position >= span.from; position -= 1) {
    if (index.block(position).lastInit > known) return false;
  }
  return true;
}

/** The last block from `position` on that is certainly within the bounds; only the last candidate may not be. */
function lastWithin(index: TableIndex, position: number, end: number, bounds: TimeBounds): number {
  return liesWithin(index.block(end - 1), bounds) ? end - 1 : Math.max(position, end - 2);
}

/** Start and end (after the line end) of every line. */
function* linesOf(bytes: Buffer): Generator<readonly [number, number]> {
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(lineEnd, start) + 1;
    if (end === 0)
      throw new RunvaultError("internal", "a block of the rendered world does not end with a line");
    yield [start, end];
    start = end;
  }
}

function timeIn(bytes: Buffer, start: number, end: number, mark: Buffer): bigint {
  const at = bytes.indexOf(mark, start) + mark.length;
  const close = bytes.indexOf(34, at);
  if (at < start + mark.length || close > end)
    throw new RunvaultError("internal", "a rendered line has no time");
  return BigInt(bytes.toString("latin1", at, close));
}

interface LinePosition {
  readonly offset: number;
  readonly row: number;
}

/** The first line of the block at or after `time`, or the block's end. */
async function lineAt(
  file: FileHandle,
  name: string,
  block: Block,
  time: bigint | undefined,
): Promise<LinePosition> {
  if (time === undefined || block.firstEvent >= time) return block;
  let row = block.row;
  if (block.lastEvent >= time) {
    const bytes = await readRange(file, block.offset, block.endOffset, name);
    for (const [start, end] of linesOf(bytes)) {
      if (timeIn(bytes, start, end, eventMark) >= time) return { offset: block.offset + start, row };
      row += 1;
    }
  }
  return { offset: block.endOffset, row: block.endRow };
}

/** The position of a row that is not the last. */
async function rowAt(file: FileHandle, name: string, index: TableIndex, row: number): Promise<LinePosition> {
  const block = index.block(index.firstWhere((candidate) => candidate.endRow > row));
  const bytes = await readRange(file, block.offset, block.endOffset, name);
  let at = block.row;
  for (const [start] of linesOf(bytes)) {
    if (at === row) return { offset: block.offset + start, row };
    at += 1;
  }
  throw new RunvaultError("internal", "the index of the rendered world names a row that does not exist", {
    place: { file: name },
  });
}

/** Bytes of the file in chunks of 1 MiB. The next one is read while the previous one is consumed. */
async function* readStretch(
  file: FileHandle,
  name: string,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const read = (offset: number): Promise<Buffer> | undefined => {
    if (offset >= end) return undefined;
    const chunk = readRange(file, offset, Math.min(end, offset + readBytes), name);
    // a reader that stops early never awaits the pending chunk; others still see its failure
    chunk.catch(() => undefined);
    return chunk;
  };
  let next = read(start);
  try {
    for (let offset = start; next !== undefined; offset += readBytes) {
      refuseWhenAborted(signal);
      const chunk = await next;
      next = read(offset + readBytes);
      yield chunk;
    }
  } finally {
    // the file is closed after this, so nothing may still be reading it
    await next?.catch(() => undefined);
  }
}

async function readRange(file: FileHandle, start: number, end: number, name: string): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(end - start);
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, start + filled);
    if (bytesRead === 0) {
      throw new RunvaultError("history_query_failed", "the rendered world is shorter than its index says", {
        place: { file: name },
        hint: "Delete the simulator's cache folder, so that the world is rendered again.",
      });
    }
    filled += bytesRead;
  }
  return buffer;
}
