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
  /** Reads the text of a held segment. */
  readonly read: (segment: Segment) => Promise<Buffer>;
  /** Called for each window whose rows are the same at the source. */
  readonly onEqual: (window: HeldWindow) => Promise<void>;
  /** Called if the source prints these rows differently or sends them in another order. */
  readonly onPrintedOtherwise?: () => void;
}

/** A window whose rows differ at the source, with their number there. */
export interface DifferingWindow extends HeldWindow {
  readonly rowsThere: number;
  /** Hash sum over those rows; undefined if they were only counted, or if the source alternates between answers. */
  readonly sumThere: bigint | undefined;
}

/** After this many differing windows in a row, the rest are assumed to differ too: fetching them costs less then. */
const mostDiffering = 3;

/**
 * Streams held windows from the source once more, without storing anything, and returns those whose rows differ there. The
 * bytes of all windows are compared first, in one answer. A window whose bytes differ is then compared alone by its row
 * hash, because a source may print or order the same rows differently. Windows that the source refuses together are
 * requested in halves.
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

/** Whether a stretch of differing windows now holds the rows that the comparison saw; false if it only counted them. */
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
  // looking for odd zeros doubles the cost, so only once equal rows have differed in bytes
  let clean: Clean = asItIs;
  for (let at = 0; at < windows.length; ) {
    // counts show which of the rest shrank; without counts, each window has to be compared
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
    // the first answer had other bytes: if the gateway alternates between two answers, the next one has the other again
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
 * How many leading windows have the same bytes at the source. Where rows are counted, the answer is compared as it arrives,
 * because lines equal to the held ones need no other check. What an answer that ended early leaves open is fetched as rows
 * normally are, and so are rows that are numbered or filtered here.
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

/** How many leading windows match an answer's bytes, and whether others follow; if none do, it may have ended early. */
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

/** The same by a normal fetch, which copes with answers that are cut off or limited. */
async function equalSlice(input: HeldComparison, clean: Clean): Promise<number> {
  const { run, table, windows, work } = input;
  const [first, last] = [windows[0]!, windows.at(-1)!];
  // only a count shows that an answer with as many rows as are held is complete
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

/** Compares the bytes of held windows with an answer. */
class HeldBytes {
  /** True once the answer has other bytes. */
  differs = false;
  /** Leading windows whose bytes match the answer. */
  equal = 0;
  readonly #input: HeldComparison;
  readonly #clean: Clean;
  /** The window being read. */
  #at = 0;
  #first: string | null = null;
  #last: string | null = null;

  constructor(input: HeldComparison, clean: Clean) {
    this.#input = input;
    this.#clean = clean;
  }

  /** The time between the first row read and the last. */
  get span(): Nanoseconds {
    return this.#first === null || this.#last === null ? 0n : BigInt(this.#last) - BigInt(this.#first);
  }

  giveUp(): void {
    this.differs = true;
  }

  /** Reads an answer as far as it matches the held bytes; `isWhole` if its end is known to be the end of all rows. */
  async compare(answer: AsyncIterable<Uint8Array>, isWhole: boolean): Promise<void> {
    let isShort = false;
    for await (const { a, same, differs } of sideBySide(answer, this.#texts())) {
      // a line of this window matched, so the windows before it match completely
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

  /** Records the row at which an answer departs from the held bytes, if its line is whole: the gateway did send it. */
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

/** Compares a window's rows with those at the source, in whatever order they come and however they are printed. */
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
