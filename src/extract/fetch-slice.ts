import { setTimeout as sleep } from "node:timers/promises";
import type { Segment } from "../archive/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import type { FilterName, Table } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import { formatTime, int64Max, int64Min } from "../model/time.ts";
import type { BufferPool } from "./buffer-pool.ts";
import { type Cut, OutOfOrder, SegmentText } from "./segment-text.ts";

/** A window of one table of one run: the unit of fetch and retry. */
export interface Slice {
  readonly run: RunRef;
  readonly table: Table;
  readonly bucket: string;
  readonly from: Nanoseconds;
  readonly to: Nanoseconds;
  /** Rows the gateway says the window holds; undefined where it says nothing. */
  readonly expected: number | undefined;
}

/** A piece of a slice whose rows are whole. */
export type SegmentDraft = Omit<Segment, "file" | "storedBytes" | "sha256">;

export interface SliceWork {
  readonly source: HistorySource;
  readonly pool: BufferPool;
  readonly segmentBytes: number;
  readonly mostBytes: number;
  /** How often a window is asked for again without any progress. */
  readonly attempts: number;
  readonly backoffMs: (attempt: number) => number;
  readonly signal: AbortSignal;
  /** Rows in any bounds by the gateway's facts; undefined where it has none, or they ignore bounds. */
  readonly countRows: ((from: Nanoseconds, to: Nanoseconds) => Promise<number>) | undefined;
  /** Takes a segment; resolves when it is accepted, not when it is stored. Calls `release` when done with the text. */
  readonly store: (draft: SegmentDraft, text: Buffer, release: () => void) => Promise<void>;
  /** Forgets the segments stored of this slice: it starts over. */
  readonly startOver: () => Promise<void>;
  readonly onRows: (rows: number, bytes: number) => void;
  readonly onRetry: (error: RunvaultError, waitMs: number) => void;
}

/**
 * Fetches a slice whole. One rule covers caps, cuts and retries: when an answer ended early, or may have, the rows that
 * share its last ts_event are dropped and asked for again from exactly that timestamp. So segments are disjoint, and
 * nothing is ever de-duplicated.
 *
 * Throws what the source throws when `attempts` are used up, `timestamp_capped` where one timestamp holds more rows
 * than the gateway gives, `row_order` where unsorted rows cannot be proven whole.
 */
export async function fetchSlice(slice: Slice, work: SliceWork): Promise<{ rows: number }> {
  try {
    return await fetchSorted(slice, work);
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
    await work.startOver();
    return await fetchUnsorted(slice, work);
  }
}

async function fetchSorted(slice: Slice, work: SliceWork): Promise<{ rows: number }> {
  const { from, to, expected, table } = slice;
  let start = from;
  const text = gather(slice, work, false, async (cut, release) => {
    const end = cut.next ?? to;
    await work.store(draftOf(slice, cut, start, end, true), cut.text, release);
    start = end;
  });
  const asker = new Asker(slice, work, text);
  /** The timestamp whose rows were dropped and are asked for again, with how many there were. */
  let held: { ts: Nanoseconds; rows: number } | undefined;
  /** Largest answer that ended whole and yet had more behind it. */
  let provenCap = Number.POSITIVE_INFINITY;
  let rowsBefore = 0;
  let ask = from;
  let limit: number | undefined;
  try {
    for (;;) {
      const ended = await asker.ask(ask, limit);
      const { rows } = text.answer;
      if (!ended) {
        // cut: keep whole groups, ask again from the last timestamp
        const dropped = text.dropLastGroup();
        if (dropped !== undefined && dropped.ts > ask) held = undefined;
        ask = dropped?.ts ?? ask;
        continue;
      }
      if (expected !== undefined && text.totalRows === expected) break;
      if (rows === 0) {
        if (held !== undefined && held.ts === ask) throw vanished(slice, held.ts);
        break;
      }
      const last = text.lastTs;
      if (last === undefined) throw withoutTimes(rows);
      // lines that are no rows count to the timestamp ahead of them, so only the rows' own timestamps tell
      const several = text.answer.first !== undefined && text.answer.first < last;
      if (held !== undefined && last > held.ts && ask <= held.ts) provenCap = Math.min(provenCap, rowsBefore);
      rowsBefore = rows;
      if (several || held?.ts !== last) {
        // more than one timestamp, or the first time at this one: is there anything behind?
        held = text.dropLastGroup()!;
        ask = held.ts;
        limit = several ? undefined : Math.max(100_000, rows * 2);
        continue;
      }
      // an answer of a single timestamp, asked for the second time
      if (rows > held.rows) {
        // a larger limit brought more of it
        held = text.dropLastGroup()!;
        limit = Math.max(100_000, rows * 4);
        continue;
      }
      const behind = last + 1n;
      const whole = await groupIsWhole(slice, work, last, rows, provenCap);
      if (!whole) await appendSplit(slice, work, text, last);
      if (behind >= to) break;
      held = undefined;
      limit = undefined;
      ask = behind;
    }
    await text.finish();
    return { rows: text.totalRows };
  } catch (error) {
    text.discard();
    throw place(error, table, slice);
  }
}

/** True when the gateway has no more rows at `ts` than it gave; undecided cases without facts fail. */
async function groupIsWhole(
  slice: Slice,
  work: SliceWork,
  ts: Nanoseconds,
  rows: number,
  provenCap: number,
): Promise<boolean> {
  if (work.countRows !== undefined) return (await work.countRows(ts, ts + 1n)) <= rows;
  if (rows < provenCap) {
    // no facts: whether anything follows tells if this answer was capped
    if (ts + 1n >= slice.to) return true;
    const follows = await firstRowFrom(slice, work, ts + 1n);
    return !follows;
  }
  return false;
}

async function firstRowFrom(slice: Slice, work: SliceWork, from: Nanoseconds): Promise<boolean> {
  const { source, signal } = work;
  for await (const chunk of source.rows({
    ...slice.run,
    table: slice.table.name,
    ...asked(from, slice.to),
    limit: 1,
    signal,
  })) {
    if (chunk.byteLength > 0) return true;
  }
  return false;
}

/**
 * The rows of one timestamp, part by part: split by the first filter whose parts sum to the facts. Throws
 * `timestamp_capped` when there are no facts to sum to, or no filter parts the rows finely enough.
 */
async function appendSplit(slice: Slice, work: SliceWork, text: SegmentText, ts: Nanoseconds): Promise<void> {
  const { table, run } = slice;
  const wanted = work.countRows === undefined ? undefined : await work.countRows(ts, ts + 1n);
  if (wanted !== undefined) {
    const seen = linesOf(text.lastGroup()).map(
      (line) => JSON.parse(line.toString("utf8")) as Record<string, string>,
    );
    for (const filter of table.filters) {
      const values = await filterValues(slice, work, filter, seen);
      const parts: Buffer[] = [];
      for (const value of values) {
        const answer: Uint8Array[] = [];
        const request = {
          ...run,
          table: table.name,
          from: ts,
          to: ts + 1n,
          limit: wanted,
          filters: { [filter]: value },
        };
        for await (const chunk of work.source.rows({ ...request, signal: work.signal })) answer.push(chunk);
        parts.push(...linesOf(Buffer.concat(answer)));
      }
      if (parts.length !== wanted) continue;
      text.dropLastGroup();
      await text.push(Buffer.concat(bySeq(parts).flatMap((line) => [line, Buffer.from("\n")])));
      return;
    }
  }
  // an answer that stops short of a timestamp with rows behind it was capped; one that does not was just not agreed with
  const capped = wanted === undefined || (ts + 1n < slice.to && (await firstRowFrom(slice, work, ts + 1n)));
  throw new RunvaultError(
    capped ? "timestamp_capped" : "incomplete",
    `the gateway gives ${text.answer.lastRows} rows at ts_event ${ts} (${formatTime(ts)})` +
      (wanted === undefined
        ? ", and nothing proves that these are all"
        : `, and says that it holds ${wanted}`),
    {
      hint: capped
        ? "Raise the gateway's cap on rows per answer, or let it answer storage facts."
        : "Run the same command again; if it stays so, ask the gateway's operator which is right.",
    },
  );
}

/** Values of a filter to split by: those of the rows seen, and those of the run's resources. */
async function filterValues(
  slice: Slice,
  work: SliceWork,
  filter: FilterName,
  seen: readonly Record<string, string>[],
): Promise<string[]> {
  const values = new Set(seen.map((row) => row[filter] ?? ""));
  const document = await work.source.document(slice.run, "resources", work.signal);
  if (document !== null) {
    const resources = (
      JSON.parse(Buffer.from(document).toString("utf8")) as { resources?: Record<string, string>[] }
    ).resources;
    for (const resource of resources ?? [])
      if (resource.table === slice.table.name) values.add(resource[filter] ?? "");
  }
  values.delete("");
  return [...values].sort();
}

/** Any order, one answer: every row of the slice at once, or none. */
async function fetchUnsorted(slice: Slice, work: SliceWork): Promise<{ rows: number }> {
  const { from, to, expected, table } = slice;
  if (expected === undefined) {
    throw place(
      new RunvaultError(
        "row_order",
        "rows come out of key order, and no storage facts can prove them whole",
        {
          hint: "Let the gateway send rows in the order of (ts_event, seq), or answer storage facts.",
        },
      ),
      table,
      slice,
    );
  }
  for (let attempt = 0; ; attempt++) {
    const text = gather(slice, work, true, (cut, release) =>
      work.store(draftOf(slice, cut, from, to, false), cut.text, release),
    );
    const asker = new Asker(slice, work, text, attempt);
    try {
      const ended = await asker.ask(from, undefined);
      if (ended && text.totalRows !== expected) {
        throw new RunvaultError(
          "row_order",
          `rows come out of key order, and an answer held ${text.totalRows} of ${expected} rows: there is no place to go on from`,
          {
            hint: "Let the gateway send rows in the order of (ts_event, seq), or raise its cap on rows per answer.",
          },
        );
      }
      if (ended) {
        await text.finish();
        return { rows: text.totalRows };
      }
      text.discard();
      await work.startOver();
    } catch (error) {
      text.discard();
      throw place(error, table, slice);
    }
  }
}

/** Asks, answer by answer, and bears what is transient: `attempts` times in a row without a new timestamp. */
class Asker {
  readonly #slice: Slice;
  readonly #work: SliceWork;
  readonly #text: SegmentText;
  #failures: number;
  #furthest: Nanoseconds | undefined;

  constructor(slice: Slice, work: SliceWork, text: SegmentText, failures = 0) {
    this.#slice = slice;
    this.#work = work;
    this.#text = text;
    this.#failures = failures;
  }

  /** One answer's rows, into the text. False when it was cut, after the wait that is due. */
  async ask(from: Nanoseconds, limit: number | undefined): Promise<boolean> {
    const { source, signal, onRows, attempts, backoffMs, onRetry } = this.#work;
    const { run, table, to } = this.#slice;
    const text = this.#text;
    let received = 0;
    text.beginAnswer();
    try {
      for await (const chunk of source.rows({
        ...run,
        table: table.name,
        ...asked(from, to),
        limit,
        signal,
      })) {
        const before = text.answer.rows;
        received += chunk.byteLength;
        await text.push(chunk);
        onRows(text.answer.rows - before, chunk.byteLength);
      }
      await text.endAnswer();
      this.#failures = 0;
      return true;
    } catch (thrown) {
      if (thrown instanceof OutOfOrder) throw thrown;
      const error = RunvaultError.from(thrown);
      signal.throwIfAborted();
      // what came before the first byte the source has already asked for again
      const midStream = received > 0 || error.code === "stream_cut";
      if (error.retry === "never" || !midStream) throw error;
      const reached = text.lastTs;
      if (reached !== undefined && (this.#furthest === undefined || reached > this.#furthest)) {
        this.#furthest = reached;
        this.#failures = 0;
      }
      if (++this.#failures >= attempts) throw error;
      const waitMs = Math.max(backoffMs(this.#failures), error.retryAfterMs ?? 0);
      onRetry(error, waitMs);
      await sleep(waitMs, undefined, { signal });
      return false;
    }
  }
}

function gather(
  slice: Slice,
  work: SliceWork,
  unsorted: boolean,
  emit: (cut: Cut, release: () => void) => Promise<void>,
): SegmentText {
  const { pool, segmentBytes, mostBytes } = work;
  return new SegmentText({
    run: slice.run,
    ...asked(slice.from, slice.to),
    segmentBytes,
    mostBytes,
    unsorted,
    allocate: () => pool.acquire(),
    release: (buffer) => pool.release(buffer),
    emit: (cut, buffer) => emit(cut, () => pool.release(buffer)),
  });
}

/** Bounds as they are sent: the ends of the int64 range are no bounds. */
export function asked(from: Nanoseconds, to: Nanoseconds) {
  return { from: from === int64Min ? undefined : from, to: to === int64Max ? undefined : to };
}

function draftOf(slice: Slice, cut: Cut, from: Nanoseconds, to: Nanoseconds, sorted: boolean): SegmentDraft {
  return {
    bucket: slice.bucket,
    from: from.toString(),
    to: to.toString(),
    rows: cut.rows,
    bytes: cut.text.byteLength,
    longestLine: cut.longestLine,
    sorted,
  };
}

function linesOf(text: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < text.byteLength; ) {
    const end = text.indexOf(10, start);
    const stop = end < 0 ? text.byteLength : end;
    if (stop > start) lines.push(text.subarray(start, stop));
    start = stop + 1;
  }
  return lines;
}

function bySeq(lines: readonly Buffer[]): Buffer[] {
  const keyed = lines.map((line) => ({
    line,
    seq: BigInt((JSON.parse(line.toString("utf8")) as { seq: string }).seq),
  }));
  return keyed.sort((a, b) => Number(a.seq > b.seq) - Number(a.seq < b.seq)).map(({ line }) => line);
}

function withoutTimes(rows: number): RunvaultError {
  return new RunvaultError(
    "malformed_row",
    `an answer of ${rows} lines holds no row with a ts_event and a seq, so nothing tells whether there are more`,
    { hint: "The gateway has to correct these rows, or to answer storage facts." },
  );
}

function vanished(slice: Slice, ts: Nanoseconds): RunvaultError {
  return new RunvaultError(
    "incomplete",
    `rows at ts_event ${ts} were there, and were not when asked for again`,
    {
      place: { ...placeOf(slice) },
      hint: "Run the same command again; if it happens again, the gateway loses rows.",
    },
  );
}

function place(error: unknown, table: Table, slice: Slice): unknown {
  if (!(error instanceof RunvaultError)) return error;
  return error.at({ ...placeOf(slice), table: table.name });
}

function placeOf(slice: Slice) {
  return {
    instance: slice.run.instanceId,
    run: slice.run.runId,
    slice: `[${slice.from}, ${slice.to})`,
  };
}
