import { closeSync, openSync, writeSync } from "node:fs";
import { privateFile } from "../../model/make-folder.ts";
import { indexFields } from "./table-index.ts";

/** Characters of a block after which it is written and indexed. */
const blockChars = 65_536;

/** The longest delay before a row is known. Rendering holds rows back this long to put late ones into key order. */
export const latestMicros = 480_000_000;

interface PendingRow {
  readonly eventMicros: number;
  readonly eventNanos: number;
  readonly initMicros: number;
  readonly initNanos: number;
  /** The line from after ts_init to its closing brace. */
  readonly rest: string;
  seq: number;
}

export interface WrittenTable {
  readonly rows: number;
  readonly bytes: number;
  /** UNIX nanoseconds; empty if there are no rows. */
  readonly first: string;
  readonly last: string;
  /** Largest ts_init, when all rows are known. Empty if there are no rows. */
  readonly complete: string;
}

/** Sorts one table's rows, added as they happen, into append order (seq) and key order, and writes them. */
export interface TableWriter {
  /**
   * Adds a row. `rest` is its canonical line after ts_init. Its event is after the latest `flush`. It is known at
   * `initMicros`, which is at most `latestMicros` after the event.
   */
  add(eventMicros: number, eventNanos: number, initMicros: number, initNanos: number, rest: string): void;
  /** Writes everything that is final, given that later rows happen after `micros`. */
  flush(micros: number): void;
  /** Writes the rest and closes the files. */
  finish(): WrittenTable;
  abandon(): void;
}

export interface TableWriterOptions {
  /** The line up to and including `"seq":"`. */
  readonly prefix: string;
  readonly dataFile: string;
  readonly indexFile: string;
  /** The digits of a sequence number. Some runs count beyond 2^53. */
  readonly seqText: (seq: number) => string;
  /** The step to the next sequence number, at least 1. */
  readonly seqStep: () => number;
}

export function tableWriter(options: TableWriterOptions): TableWriter {
  const { prefix, seqText, seqStep } = options;
  const data = openSync(options.dataFile, "wx", privateFile);
  const index = openSync(options.indexFile, "wx", privateFile);
  let unnumbered: PendingRow[] = [];
  let numbered: PendingRow[] = [];
  let seq = 0;
  let rows = 0;
  let bytes = 0;
  let firstOfTable: PendingRow | undefined;
  let lastOfTable: PendingRow | undefined;
  let latestOfTable: PendingRow | undefined;

  let block = "";
  let blockRow = 0;
  let blockFirst: PendingRow | undefined;
  let earliest: PendingRow | undefined;
  let latest: PendingRow | undefined;

  const endBlock = (): void => {
    if (blockFirst === undefined) return;
    const entry = BigInt64Array.of(
      BigInt(bytes),
      BigInt(blockRow),
      nanoseconds(blockFirst.eventMicros, blockFirst.eventNanos),
      nanoseconds(lastOfTable!.eventMicros, lastOfTable!.eventNanos),
      nanoseconds(earliest!.initMicros, earliest!.initNanos),
      nanoseconds(latest!.initMicros, latest!.initNanos),
    );
    if (entry.length !== indexFields) throw new Error("an index entry has another width");
    writeWhole(index, Buffer.from(entry.buffer));
    const encoded = Buffer.from(block);
    writeWhole(data, encoded);
    bytes += encoded.length;
    block = "";
    blockRow = rows;
    blockFirst = undefined;
    earliest = undefined;
    latest = undefined;
  };

  const write = (row: PendingRow): void => {
    block += `${prefix}${seqText(row.seq)}","ts_event":"${timeText(row.eventMicros, row.eventNanos)}","ts_init":"${timeText(row.initMicros, row.initNanos)}${row.rest}\n`;
    rows += 1;
    firstOfTable ??= row;
    blockFirst ??= row;
    lastOfTable = row;
    if (earliest === undefined || byInit(row, earliest) < 0) earliest = row;
    if (latest === undefined || byInit(row, latest) > 0) latest = row;
    if (latestOfTable === undefined || byInit(row, latestOfTable) > 0) latestOfTable = row;
    if (block.length >= blockChars) endBlock();
  };

  const flush = (micros: number): void => {
    unnumbered.sort(byInit);
    const known = countWhile(unnumbered, (row) => row.initMicros < micros);
    for (let position = 0; position < known; position += 1) {
      const row = unnumbered[position]!;
      seq += seqStep();
      row.seq = seq;
      numbered.push(row);
    }
    unnumbered = unnumbered.slice(known);
    numbered.sort(byKey);
    const settled = countWhile(numbered, (row) => row.eventMicros < micros - latestMicros);
    for (let position = 0; position < settled; position += 1) write(numbered[position]!);
    numbered = numbered.slice(settled);
  };

  const abandon = (): void => {
    closeSync(data);
    closeSync(index);
  };

  return {
    add(eventMicros, eventNanos, initMicros, initNanos, rest) {
      unnumbered.push({ eventMicros, eventNanos, initMicros, initNanos, rest, seq: 0 });
    },
    flush,
    finish() {
      flush(Number.POSITIVE_INFINITY);
      endBlock();
      abandon();
      return {
        rows,
        bytes,
        first: firstOfTable === undefined ? "" : timeText(firstOfTable.eventMicros, firstOfTable.eventNanos),
        last: lastOfTable === undefined ? "" : timeText(lastOfTable.eventMicros, lastOfTable.eventNanos),
        complete:
          latestOfTable === undefined ? "" : timeText(latestOfTable.initMicros, latestOfTable.initNanos),
      };
    },
    abandon,
  };
}

/** UNIX nanoseconds as text, from whole microseconds and the remaining nanoseconds. */
function timeText(micros: number, nanos: number): string {
  return `${micros}${nanos < 10 ? "00" : nanos < 100 ? "0" : ""}${nanos}`;
}

function nanoseconds(micros: number, nanos: number): bigint {
  return BigInt(micros) * 1000n + BigInt(nanos);
}

function byInit(a: PendingRow, b: PendingRow): number {
  return a.initMicros - b.initMicros || a.initNanos - b.initNanos;
}

function byKey(a: PendingRow, b: PendingRow): number {
  return a.eventMicros - b.eventMicros || a.eventNanos - b.eventNanos || a.seq - b.seq;
}

function countWhile(rows: readonly PendingRow[], holds: (row: PendingRow) => boolean): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(rows[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function writeWhole(file: number, bytes: Uint8Array): void {
  let written = 0;
  while (written < bytes.length) written += writeSync(file, bytes, written);
}
