import { createHash } from "node:crypto";
import { linesWithoutOddZeros } from "../archive/convert-line.ts";
import type { Segment } from "../archive/manifest.ts";
import { normalizedLine } from "../archive/verify-line.ts";
import type { RunRef } from "../model/source.ts";
import type { Table } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import { Turns } from "../model/turns.ts";
import { type SliceWork, segmentsOf } from "./fetch-slice.ts";
import { type HeldWindow, sumRows } from "./held-window.ts";
import { firstTime, lastTime } from "./survey.ts";
import { asked, eachLine, isRefusal } from "./table-asks.ts";

export interface HeldComparison {
  readonly run: RunRef;
  readonly table: Table;
  /** Contiguous, in order. */
  readonly windows: readonly HeldWindow[];
  readonly work: SliceWork;
  /** The text of a segment that is held. */
  readonly read: (segment: Segment) => Promise<Buffer>;
  /** Hears of each window whose rows are the same at the source. */
  readonly onEqual: (window: HeldWindow) => Promise<void>;
}

/** A window whose rows are others at the source, with their number. */
export interface DifferingWindow extends HeldWindow {
  readonly rowsThere: number;
}

/** As many windows in a row as may differ before the rest are taken to differ, too: fetching them costs less then. */
const mostDiffering = 3;

/**
 * Streams held windows from the source once more, without storing anything, and gives those whose rows are others there:
 * first by their bytes, all windows in one answer; where these differ, that window alone by its row hash, for a source
 * may print or order the same rows otherwise. Windows that the source refuses together are
 * asked for in halves.
 */
export async function compareHeld(input: HeldComparison): Promise<DifferingWindow[]> {
  const { windows } = input;
  try {
    return await compareTogether(input);
  } catch (error) {
    if (!isRefusal(error) || windows.length === 1) throw error;
    const middle = Math.ceil(windows.length / 2);
    const ahead = await compareHeld({ ...input, windows: windows.slice(0, middle) });
    return [...ahead, ...(await compareHeld({ ...input, windows: windows.slice(middle) }))];
  }
}

async function compareTogether(input: HeldComparison): Promise<DifferingWindow[]> {
  const { windows, onEqual, work } = input;
  const differing: DifferingWindow[] = [];
  let inRow = 0;
  // looking for odd zeros costs as much as all else here: only once bytes differed of rows that are the same
  let clean: Clean = asItIs;
  for (let at = 0; at < windows.length; ) {
    // counts tell which of the rest shrank; where there are none, each window has to tell for itself
    if (inRow === mostDiffering && work.countRows !== undefined) {
      for (const window of windows.slice(at)) {
        differing.push({ ...window, rowsThere: await work.countRows(window.from, window.to) });
      }
      return differing;
    }
    const equal = await equalBytes({ ...input, windows: windows.slice(at) }, clean);
    if (equal > 0) inRow = 0;
    at += equal;
    const window = windows[at];
    if (window === undefined) break;
    const there = await askAlone(input, window);
    if (there.isSame) {
      await onEqual(window);
      clean = (text) => linesWithoutOddZeros(text, input.table);
    } else {
      differing.push({ ...window, rowsThere: there.rows });
      inRow++;
    }
    at++;
  }
  return differing;
}

/**
 * How many of the windows, from the first on, have the same bytes at the source. Where they are counted, by an answer as
 * it comes, for lines like those held need no second look; what an answer that ended early leaves open is asked for as
 * rows are fetched.
 */
async function equalBytes(input: HeldComparison, clean: Clean): Promise<number> {
  const { windows, work } = input;
  if (work.countRows === undefined || clean !== asItIs) return await equalSlice(input, clean);
  const { equal, differs } = await equalAnswer(input);
  if (differs || equal === windows.length) return equal;
  return equal + (await equalSlice({ ...input, windows: windows.slice(equal) }, clean));
}

/** How many windows one answer has the bytes of, and whether it has others then; if not, it may have ended early. */
async function equalAnswer(
  input: HeldComparison,
): Promise<{ readonly equal: number; readonly differs: boolean }> {
  const { run, table, windows, work } = input;
  const { source, signal, onRows } = work;
  const held = new HeldBytes(input, asItIs);
  const bounds = asked(windows[0]!.from, windows.at(-1)!.to);
  let bytes = 0;
  try {
    for await (const chunk of source.rows({ ...run, table: table.name, ...bounds, signal })) {
      await held.compare(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      if (held.differs) break;
      bytes += chunk.byteLength;
      onRows(0, chunk.byteLength);
    }
    await held.end(false);
  } catch (error) {
    signal.throwIfAborted();
    // whatever else it is, asking for what is left will tell
    if (isRefusal(error)) throw error;
  }
  const rows = sumRows(windows.slice(0, held.equal));
  onRows(rows, 0);
  if (held.equal === windows.length) work.seen.answered(table.name, rows, bytes, held.span);
  return { equal: held.equal, differs: held.differs };
}

/** The same by rows as they are fetched, whatever the source does to its answers. */
async function equalSlice(input: HeldComparison, clean: Clean): Promise<number> {
  const { run, table, windows, work } = input;
  const [first, last] = [windows[0]!, windows.at(-1)!];
  // an answer that ends with as many rows as are held is the whole of it only where they are counted
  const expected =
    work.countRows === undefined ? undefined : windows.reduce((sum, { rows }) => sum + rows, 0);
  const held = new HeldBytes(input, clean);
  const slice = { run, table, bucket: "", from: first.from, to: last.to, expected };
  for await (const event of segmentsOf(slice, work)) {
    if (event.kind === "segment") {
      try {
        await held.compare(await clean(event.text));
      } finally {
        event.release();
      }
    } else if (event.kind === "restart") held.giveUp();
    else await held.end(true);
    // known to be others: the rest is not asked for
    if (held.differs) break;
  }
  return held.equal;
}

/** What is done to both texts ahead of the comparison. */
type Clean = (text: Buffer) => Buffer | Promise<Buffer>;

const asItIs: Clean = (text) => text;

/** The bytes of windows that are held, which those of an answer are held against one after the other. */
class HeldBytes {
  /** True once the answer has other bytes. */
  differs = false;
  /** Windows from the first on of which the answer has the bytes, and no others. */
  equal = 0;
  readonly #input: HeldComparison;
  readonly #clean: Clean;
  /** The window under way, its segments that are still to come, and what is left of the one being compared. */
  #at = 0;
  #segments: Segment[];
  #left: Buffer = Buffer.alloc(0);
  #first: string | null = null;
  #last: string | null = null;

  constructor(input: HeldComparison, clean: Clean) {
    this.#input = input;
    this.#clean = clean;
    this.#segments = [...input.windows[0]!.segments];
  }

  /** The time between the first row that was read and the last. */
  get span(): Nanoseconds {
    return this.#first === null || this.#last === null ? 0n : BigInt(this.#last) - BigInt(this.#first);
  }

  giveUp(): void {
    this.differs = true;
  }

  async compare(text: Buffer): Promise<void> {
    for (let rest = text; rest.byteLength > 0 && !this.differs; ) {
      if (this.#left.byteLength === 0 && !(await this.#hasMore())) return this.giveUp();
      const size = Math.min(rest.byteLength, this.#left.byteLength);
      const same = commonBytes(rest, this.#left, size);
      // a line of this window: what came before it is all there is of those ahead
      if (this.equal < this.#at && rest.subarray(0, same).includes(10)) await this.#confirm(this.#at);
      if (same < size) return this.giveUp();
      rest = rest.subarray(size);
      this.#left = this.#left.subarray(size);
    }
  }

  /** Takes note that the answer ended; `isWhole` where it is known to be all there is. */
  async end(isWhole: boolean): Promise<void> {
    if (this.differs) return;
    if (!(await this.#hasMore())) await this.#confirm(this.#input.windows.length);
    else if (isWhole) await this.#confirm(this.#at);
  }

  async #confirm(windowsBefore: number): Promise<void> {
    const { windows, onEqual } = this.#input;
    for (; this.equal < windowsBefore; this.equal++) await onEqual(windows[this.equal]!);
  }

  async #hasMore(): Promise<boolean> {
    const { windows, read } = this.#input;
    while (this.#left.byteLength === 0) {
      const segment = this.#segments.shift();
      if (segment !== undefined) {
        if (segment.rows === 0) continue;
        this.#left = await this.#clean(await read(segment));
        this.#first ??= await firstTime(this.#left);
        this.#last = (await lastTime(this.#left)) ?? this.#last;
      } else if (this.#at < windows.length - 1) {
        this.#at++;
        this.#segments = [...windows[this.#at]!.segments];
      } else return false;
    }
    return true;
  }
}

/** How many bytes two texts have in common from their beginning, of the first so many. */
function commonBytes(a: Buffer, b: Buffer, size: number): number {
  if (a.compare(b, 0, size, 0, size) === 0) return size;
  let same = 0;
  while (a[same] === b[same]) same++;
  return same;
}

/** A window's rows at the source, the same or not in whatever order they come and however they are printed. */
async function askAlone(
  { run, table, work, read }: HeldComparison,
  { from, to, rows, segments }: HeldWindow,
): Promise<{ readonly isSame: boolean; readonly rows: number }> {
  const held = new LineHash(table);
  for (const segment of segments) if (segment.rows > 0) await held.add(await read(segment));
  let there = new LineHash(table);
  const expected = work.countRows === undefined ? undefined : rows;
  for await (const event of segmentsOf({ run, table, bucket: "", from, to, expected }, work)) {
    if (event.kind === "restart") there = new LineHash(table);
    if (event.kind !== "segment") continue;
    try {
      await there.add(event.text);
    } finally {
      event.release();
    }
  }
  return { isSame: held.text === there.text, rows: there.rows };
}

/** Count and sum over the canonical lines of some rows, in any order; a line that is no row counts by its bytes. */
class LineHash {
  readonly #table: Table;
  rows = 0;
  #sum = 0n;

  constructor(table: Table) {
    this.#table = table;
  }

  get text(): string {
    return `${this.rows}:${this.#sum}`;
  }

  async add(text: Buffer): Promise<void> {
    const turns = new Turns();
    for (const bytes of eachLine(await linesWithoutOddZeros(text, this.#table))) {
      if (turns.isDue(bytes.byteLength)) await turns.next();
      const line = bytes.toString("utf8");
      const canonical = normalizedLine(this.#table, line) ?? line;
      this.rows++;
      this.#sum += createHash("md5").update(canonical).digest().readBigUInt64BE(0);
    }
  }
}
