import type { Segment } from "../../archive/manifest/manifest.ts";
import type { Table } from "../../model/profile/table.ts";
import type { AskedRun } from "../../model/source.ts";
import { sideBySide } from "../../model/text/side-by-side.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { linesWithoutOddZeros } from "../../row/strict-line.ts";
import { segmentsOf } from "../fetch/fetch-slice.ts";
import type { SliceWork } from "../fetch/slice.ts";
import { AnswerEar } from "./answer-size.ts";
import { firstTime, lastTime } from "./full-scan.ts";
import { type HeldWindow, sumRows } from "./held-window.ts";
import { LineHash } from "./line-hash.ts";
import { asked, routeOf } from "./route.ts";
import { rowKey } from "./row-key.ts";
import { isRefusal, jsonOf, timeOf } from "./table-asks.ts";

export interface HeldComparison {
  readonly run: AskedRun;
  readonly table: Table;
  /** Contiguous, in order. */
  readonly windows: readonly HeldWindow[];
  readonly work: SliceWork;
  /** The text of a segment that is held. */
  readonly read: (segment: Segment) => Promise<Buffer>;
  /** Hears of each window whose rows are the same at the source. */
  readonly onEqual: (window: HeldWindow) => Promise<void>;
  /** Hears where these rows are printed otherwise there, or come in another order. */
  readonly onPrintedOtherwise?: () => void;
}

/** A window whose rows are others at the source, with their number. */
export interface DifferingWindow extends HeldWindow {
  readonly rowsThere: number;
  /** Sum over those rows; undefined where they were only counted, or others came in between. */
  readonly sumThere: bigint | undefined;
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

/** Whether a stretch of windows that differed has the rows by now that the comparison saw; false where it only counted. */
export async function isAsSeen(
  table: Table,
  stretch: readonly DifferingWindow[],
  segments: readonly Segment[],
  read: HeldComparison["read"],
): Promise<boolean> {
  const window = { from: stretch[0]!.from, to: stretch.at(-1)!.to };
  const here = new LineHash(table);
  for (const segment of segments) await here.add(await read(segment), window);
  let [rows, sum] = [0, 0n];
  for (const { rowsThere, sumThere } of stretch) {
    if (sumThere === undefined) return false;
    rows += rowsThere;
    sum += sumThere;
  }
  return here.rows === rows && here.sum === sum;
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
        const rowsThere = await work.countRows(window.from, window.to);
        differing.push({ ...window, rowsThere, sumThere: undefined });
      }
      return differing;
    }
    const equal = await equalBytes({ ...input, windows: windows.slice(at) }, clean);
    if (equal > 0) inRow = 0;
    at += equal;
    const window = windows[at];
    if (window === undefined) break;
    let there = await askAlone(input, window);
    // other bytes came before these: where an answer takes turns with another, the next one has that other again
    const isInTurns = there.isSame && !there.isOtherText;
    if (isInTurns) there = await askAlone(input, window);
    if (there.isSame) {
      await onEqual(window);
      if (there.isOtherText) input.onPrintedOtherwise?.();
      clean = (text) => linesWithoutOddZeros(text, input.table);
    } else {
      differing.push({ ...window, rowsThere: there.rows, sumThere: isInTurns ? undefined : there.sum });
      inRow++;
    }
    at++;
  }
  return differing;
}

/**
 * How many of the windows, from the first on, have the same bytes at the source. Where they are counted, by an answer as
 * it comes, for lines like those held need no second look; what an answer that ended early leaves open is asked for as
 * rows are fetched, and so is what is numbered or left out here.
 */
async function equalBytes(input: HeldComparison, clean: Clean): Promise<number> {
  const { windows, work, table } = input;
  const { numbers, bounds } = routeOf(work.source, table);
  const isToMake = numbers !== "given" || !bounds.from || !bounds.to;
  if (work.countRows === undefined || clean !== asItIs || isToMake) return await equalSlice(input, clean);
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
  const bounds = asked(routeOf(source, table), windows[0]!.from, windows.at(-1)!.to);
  let bytes = 0;
  const ear = new AnswerEar();
  const answer = async function* () {
    const { onBody } = ear;
    for await (const chunk of source.rows({ ...run, table: table.name, ...bounds, signal, onBody })) {
      yield chunk;
      bytes += chunk.byteLength;
      onRows(0, chunk.byteLength);
    }
  };
  try {
    await held.compare(answer(), false);
  } catch (error) {
    signal.throwIfAborted();
    // requesting the rest will show any other problem
    if (isRefusal(error)) throw error;
  }
  const rows = sumRows(windows.slice(0, held.equal));
  onRows(rows, 0);
  if (held.equal === windows.length) work.seen.answered(table.name, ear.sizeOf(rows, bytes), held.span);
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
  const answer = async function* () {
    for await (const event of segmentsOf(slice, work)) {
      if (event.kind === "restart") return held.giveUp();
      if (event.kind !== "segment") continue;
      try {
        yield await clean(event.text);
      } finally {
        event.release();
      }
    }
  };
  await held.compare(answer(), true);
  return held.equal;
}

/** Applied to both texts before the comparison. */
type Clean = (text: Buffer) => Buffer | Promise<Buffer>;

const asItIs: Clean = (text) => text;

/** The bytes of held windows, for comparison with an answer. */
class HeldBytes {
  /** True once the answer has other bytes. */
  differs = false;
  /** Leading windows whose bytes the answer has, without others. */
  equal = 0;
  readonly #input: HeldComparison;
  readonly #clean: Clean;
  /** The window under way. */
  #at = 0;
  #first: string | null = null;
  #last: string | null = null;

  constructor(input: HeldComparison, clean: Clean) {
    this.#input = input;
    this.#clean = clean;
  }

  /** The time between the first row that was read and the last. */
  get span(): Nanoseconds {
    return this.#first === null || this.#last === null ? 0n : BigInt(this.#last) - BigInt(this.#first);
  }

  giveUp(): void {
    this.differs = true;
  }

  /** Reads an answer as far as it has the bytes held; `isWhole` where its end is known to be that of all there is. */
  async compare(answer: AsyncIterable<Uint8Array>, isWhole: boolean): Promise<void> {
    let isShort = false;
    for await (const { a, same, differs } of sideBySide(answer, this.#texts())) {
      // a line of this window: what came before it is all there is of those ahead
      if (this.equal < this.#at && a.subarray(0, same).includes(10)) await this.#confirm(this.#at);
      if (!differs) continue;
      if (a.byteLength > 0) {
        this.giveUp();
        this.#noteOther(a, same);
      } else isShort = true;
    }
    if (this.differs) return;
    if (!isShort) await this.#confirm(this.#input.windows.length);
    else if (isWhole) await this.#confirm(this.#at);
  }

  /** Takes note of the row with which an answer departs from what is here, where its line is whole: it came. */
  #noteOther(piece: Buffer, same: number): void {
    const { table, work } = this.#input;
    const end = piece.indexOf(10, same);
    const line = piece.subarray((same === 0 ? -1 : piece.lastIndexOf(10, same - 1)) + 1, end < 0 ? 0 : end);
    const time = jsonOf(line) === undefined ? null : timeOf(line.toString("utf8"));
    if (time === null) return;
    const key = rowKey(table, routeOf(work.source, table).numbers === "given", line.toString("utf8"));
    const window = { from: BigInt(time), to: BigInt(time) + 1n };
    work.onLost?.(table.name, { ...window, rows: 1, firstKey: key, lastKey: key });
  }

  async #confirm(windowsBefore: number): Promise<void> {
    const { windows, onEqual } = this.#input;
    for (; this.equal < windowsBefore; this.equal++) await onEqual(windows[this.equal]!);
  }

  async *#texts(): AsyncGenerator<Buffer> {
    const { windows, read } = this.#input;
    for (const [at, { segments }] of windows.entries()) {
      this.#at = at;
      for (const segment of segments) {
        if (segment.rows === 0) continue;
        const text = await this.#clean(await read(segment));
        this.#first ??= await firstTime(text);
        this.#last = (await lastTime(text)) ?? this.#last;
        yield text;
      }
    }
  }
}

/** A window's rows at the source, the same or not in whatever order they come and however they are printed. */
async function askAlone(
  { run, table, work, read }: HeldComparison,
  { from, to, rows, segments }: HeldWindow,
): Promise<{
  readonly isSame: boolean;
  readonly isOtherText: boolean;
  readonly rows: number;
  readonly sum: bigint;
}> {
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
  const { rows: rowsThere, sum } = there;
  const isSame = held.rows === rowsThere && held.sum === sum;
  return { isSame, isOtherText: held.sha256 !== there.sha256, rows: rowsThere, sum };
}
