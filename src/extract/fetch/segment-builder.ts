import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { rowText } from "../../model/text/operator-text.ts";
import { countText } from "../../model/text/plural.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { Turns } from "../../model/turns.ts";
import { blankLinesIn, refuseEndlessBlanks } from "../../row/blank-lines.ts";
import { type Instant, instantOf, toNanoseconds } from "../../row/instant.ts";
import { lineTooLong, longestLineBytes } from "../../row/line.ts";
import { isBlank, parseObject } from "../../row/line-object.ts";
import { RowKeyReader } from "../../row/row-key-reader.ts";
import { OutsideBounds, outsideWindow, whyByRow } from "../plan/coarse-bounds.ts";
import type { SeqNumbers } from "../plan/route.ts";
import type { BufferPool } from "./buffer-pool.ts";
import { LastTimes } from "./last-times.ts";
import { numberedGroup } from "./numbered-group.ts";

const newline = 10;

/** How many lines an answer may have that are not rows, in addition to one per row and to those as long as rows. */
const mostOddLines = 10_000;
const leastRowBytes = 128;
/** How many repeated rows an answer may have, in addition to its number of rows, so that endless repetition ends. */
const mostDoubled = 10_000;

/** A run of whole timestamp groups, cut off the front of the text. */
export interface Cut {
  readonly text: Buffer;
  /** Returns the text's buffer to the pool. To be called once, by the owner of the cut. */
  readonly release: () => void;
  readonly rows: number;
  readonly longestLine: number;
  /** The ts_event of the first row after the cut; undefined at the end. */
  readonly next: Nanoseconds | undefined;
}

/** An answer's contents. A line that is not a row counts as one. */
export interface AnswerStats {
  rows: number;
  /** Where to request the rows of the first timestamp: their ts_event. Undefined while there are none. */
  first: Nanoseconds | undefined;
  /** True if that is the ts_event of a row. */
  isRowFirst: boolean;
  /** Rows at `first`; all rows if there is no second timestamp. */
  firstRows: number;
  /** A hash of these rows' seqs, in order. */
  firstKeys: number;
  /** Rows that were left out because they lie outside bounds that could not be sent. */
  leftOut: number;
  /** Lines that were left out because they repeat the line before them. */
  doubled: number;
  /** Set by the caller once the answer is known to have come in several bodies. */
  isJoined: boolean;
}

/**
 * Thrown if a row belongs before one that is already here: the caller starts the slice over, unsorted. If that does not
 * help, the caller throws its cause, which is set if the row lies before the requested window.
 */
export class OutOfOrder extends Error {}

export interface SegmentBuilderOptions {
  readonly run: RunRef;
  readonly from: Nanoseconds | undefined;
  readonly to: Nanoseconds | undefined;
  /** The text is cut before it grows beyond this. */
  readonly segmentBytes: number;
  /** The most bytes that the rows of one timestamp may take. */
  readonly mostBytes: number;
  /** Accepts rows in any order, and cuts at any line end. */
  readonly unsorted: boolean;
  /** Where the numbers of rows come from. Default: `given`. */
  readonly numbers?: SeqNumbers;
  /** Nanoseconds of the unit of bounds: rows within one unit form one group. Default: 1. */
  readonly stepNs?: bigint;
  /** Bounds that could not be sent to the source: rows outside them are left out. Default: none, both were sent. */
  readonly leavesOut?: { readonly early: boolean; readonly late: boolean };
  /**
   * Leaves out a row that repeats the row before it, byte for byte. Not where pages meet: there it shows that rows have
   * moved, and another one may be hidden. Default: false.
   */
  readonly mergesDoubles?: boolean;
  /** Supplies buffers for the text, of at least `segmentBytes`. */
  readonly pool: Pick<BufferPool, "acquire" | "release">;
}

/**
 * Gathers the lines of answers and cuts them into segments at timestamp boundaries, while checking the identity, bounds
 * and order of every row. Where a cut falls depends only on the rows, not on how the bytes arrived, so an
 * interrupted job cuts in the same places as an undisturbed one.
 *
 * A line that is not a row may belong to the timestamp before it or to the one after it, so it joins both into one
 * group, which is dropped and requested again as one; the conversion decides what happens to the line.
 *
 * If seq is numbered here, a group's lines keep their empty seq until the group is complete: until a row after it came,
 * or the caller treated it as complete.
 */
export class SegmentBuilder {
  readonly #options: SegmentBuilderOptions;
  readonly #key: RowKeyReader;
  readonly #from: Instant | undefined;
  readonly #to: Instant | undefined;
  #buffer: Buffer | undefined;
  /**
   * Bytes filled, bytes scanned (always a line start), the start of the last group, and the place of the next line to
   * read: after the scanned bytes and any blank lines left out, whose gap is closed once for many.
   */
  #end = 0;
  #scanned = 0;
  #groupStart = 0;
  #unread = 0;
  /** There is no line end between `#unread` and here; a line that comes in many pieces is searched only once. */
  #searched = 0;
  #rows = 0;
  #groupRows = 0;
  /** A hash of the group's seqs. */
  #groupKeys = 0;
  /** Lines at the end of the last group that are not rows: the next row joins the group whatever its timestamp. */
  #groupTail = 0;
  /** Where to request the last group: its first row's ts_event, or the start of the answer if no row came before. */
  #groupHigh = 0;
  #groupLow = 0;
  /** The longest line before the last group, and in it. */
  #longest = 0;
  #groupLongest = 0;
  /** The key of the newest row. */
  #anyRow = false;
  #lastHigh = 0;
  #lastLow = 0;
  #lastSeqHigh = 0;
  #lastSeqLow = 0;
  /** Timestamps before the last group. */
  readonly #before = new LastTimes();
  #asked: Instant = { high: 0, low: 0 };
  #atAnswerStart = true;
  #inFirstGroup = true;
  /** Lines of the answer that are not rows: blank ones, others, the others' bytes, and the first of them. */
  #blankLines = 0;
  #oddLines = 0;
  #oddBytes = 0;
  #firstOdd = "";
  readonly #turns = new Turns();
  readonly #numbers: SeqNumbers;
  /** The last group has lines that are not rows. */
  #hasOdd = false;
  /** Nanoseconds that form a group: up to a second. */
  readonly #step: number;
  /** The last group is complete and its rows are numbered. */
  #isNumbered = false;
  /** Where the last row lies, if it is left out: a line that is not a row is treated like the row before it. */
  #beyond: "early" | "late" | undefined;
  /** First and last time of all rows received, including those left out; NaN while there are none. */
  #seenFirstHigh = Number.NaN;
  #seenFirstLow = Number.NaN;
  #seenLastHigh = Number.NaN;
  #seenLastLow = Number.NaN;
  /** No row of the current chunk was read yet. */
  #isChunkStart = true;
  /** The text has a row of the answer. */
  #isAnyKept = false;
  /** Rows in the text or in cuts, not counting dropped ones. */
  totalRows = 0;
  answer: AnswerStats = emptyAnswer();

  constructor(options: SegmentBuilderOptions) {
    this.#options = options;
    this.#numbers = options.numbers ?? "given";
    this.#step = Number(options.stepNs ?? 1n);
    this.#key = new RowKeyReader(options.run, this.#numbers !== "given");
    this.#from = options.from === undefined ? undefined : instantOf(options.from);
    this.#to = options.to === undefined ? undefined : instantOf(options.to);
  }

  /** Begins an answer requested from `from`. Rows so far are complete; the answer's rows form a separate group. */
  beginAnswer(from: Nanoseconds): void {
    this.answer = emptyAnswer();
    this.#atAnswerStart = true;
    this.#inFirstGroup = true;
    this.#blankLines = this.#oddLines = this.#oddBytes = 0;
    this.#asked = instantOf(from);
    this.#beyond = undefined;
    this.#isAnyKept = false;
    this.#numberGroup();
    this.#beginGroup(this.#scanned);
  }

  /** True once a row after the bounds came and was left out: no more rows within them will come. */
  get isPast(): boolean {
    return this.#beyond === "late";
  }

  /** First and last ts_event of all rows received, including those left out. */
  get seen(): { readonly first: Nanoseconds; readonly last: Nanoseconds } | undefined {
    if (Number.isNaN(this.#seenFirstHigh)) return undefined;
    return {
      first: toNanoseconds({ high: this.#seenFirstHigh, low: this.#seenFirstLow }),
      last: toNanoseconds({ high: this.#seenLastHigh, low: this.#seenLastLow }),
    };
  }

  /** Drops the incomplete last line of an answer that is not read to its end. */
  dropRest(): void {
    this.#cutBack(this.#scanned);
  }

  /** Takes bytes of the answer, and yields each cut as soon as it is complete. */
  async *push(chunk: Uint8Array): AsyncGenerator<Cut, void> {
    let buffer = this.#buffer ?? this.#use(await this.#options.pool.acquire());
    if (this.#end + chunk.byteLength > buffer.byteLength) buffer = this.#grow(this.#end + chunk.byteLength);
    buffer.set(chunk, this.#end);
    this.#end += chunk.byteLength;
    if (this.#atAnswerStart && this.#end - this.#unread >= 3) this.#stripByteOrderMark();
    this.#isChunkStart = true;
    yield* this.#scan();
    // if seq is numbered here, the space reserved for numbers stays
    if (this.#numbers === "given") this.#closeUp();
  }

  /**
   * Ends an answer that the source ended properly. A last line without a line end counts if it is a row; otherwise the
   * answer was truncated inside it: throws `stream_cut`.
   */
  async *endAnswer(): AsyncGenerator<Cut, void> {
    const at = this.#unread;
    if (at === this.#end) return;
    if (!isBlank(this.#buffer!, at, this.#end) && parseObject(this.#buffer!, at, this.#end) === null) {
      throw new RunvaultError("stream_cut", "the answer ends inside a line", {
        hint: "Run the same command again; if it happens again, the gateway or a proxy truncates answers.",
      });
    }
    yield* this.push(Buffer.from("\n"));
  }

  /**
   * Drops the rows of the last group, and any incomplete line after them: an answer that ended early, or may have, does
   * not show whether these are all. Returns the timestamp to request again from, with the rows dropped; undefined if
   * the answer had none.
   */
  dropLastGroup(): { ts: Nanoseconds; rows: number; keys: number } | undefined {
    this.#cutBack(this.#scanned);
    if (this.#groupRows === 0) return undefined;
    const dropped = { ts: this.#groupTs(), rows: this.#groupRows, keys: this.#groupKeys };
    this.#cutBack(this.#groupStart);
    this.#rows -= this.#groupRows;
    this.totalRows -= this.#groupRows;
    this.#groupRows = 0;
    this.#groupTail = 0;
    this.#groupLongest = 0;
    // the next row may have this timestamp again, with any seq
    this.#lastHigh = this.#groupHigh;
    this.#lastLow = this.#groupLow;
    this.#lastSeqHigh = -1;
    this.#lastSeqLow = -1;
    return dropped;
  }

  /** Drops up to `count` lines at the end of the last group that are not rows. */
  dropTail(count: number): void {
    const dropped = Math.min(count, this.#groupTail);
    let end = this.#scanned;
    for (let i = 0; i < dropped; i++) end = this.#buffer!.lastIndexOf(newline, end - 2) + 1;
    this.#cutBack(end);
    this.#rows -= dropped;
    this.totalRows -= dropped;
    this.#groupRows -= dropped;
    this.#groupTail -= dropped;
  }

  /** The rows of the last group, as text. */
  lastGroup(): Buffer {
    return Buffer.from(this.#buffer?.subarray(this.#groupStart, this.#scanned) ?? []);
  }

  /** Cuts off everything that is left. */
  async *finish(): AsyncGenerator<Cut, void> {
    this.#numberGroup();
    if (this.#rows > 0) yield await this.#cut(this.#scanned, this.#rows, undefined);
    this.discard();
  }

  discard(): void {
    if (this.#buffer !== undefined) this.#options.pool.release(this.#buffer);
    this.#buffer = undefined;
    this.#cutBack(0);
    this.#groupStart = 0;
    this.#rows = this.#groupRows = this.#groupTail = 0;
    this.#longest = this.#groupLongest = 0;
  }

  async *#scan(): AsyncGenerator<Cut, void> {
    const { segmentBytes, unsorted, leavesOut } = this.#options;
    const isNumbering = this.#numbers !== "given";
    // bytes beyond `#end` are left over from earlier use
    let filled = this.#buffer!.subarray(0, this.#end);
    const cut = async (bytes: number, rows: number, next: Nanoseconds | undefined) => {
      const made = await this.#cut(bytes, rows, next);
      filled = this.#buffer!.subarray(0, this.#end);
      return made;
    };
    for (;;) {
      if (isNumbering && this.#unread < this.#end && this.#makeRoom(leastRoom))
        filled = this.#buffer!.subarray(0, this.#end);
      const at = this.#unread;
      const lineEnd = filled.indexOf(newline, Math.max(at, this.#searched));
      if (lineEnd < 0) {
        this.#searched = this.#end;
        if (this.#end - at > longestLineBytes) throw this.#lineTooLong();
        return;
      }
      const length = lineEnd - at;
      if (length > longestLineBytes) throw this.#lineTooLong();
      if (this.#turns.isDue(length)) await this.#turns.next();
      if (isBlank(filled, at, lineEnd)) {
        // blank lines are removed from the text
        this.#blankLines += blankLinesIn(length);
        refuseEndlessBlanks(this.#blankLines, this.answer.rows);
        this.#unread = lineEnd + 1;
        continue;
      }
      const isRow = this.#key.read(at, lineEnd);
      if (leavesOut !== undefined && this.#isLeftOut(isRow, leavesOut)) {
        this.#unread = lineEnd + 1;
        continue;
      }
      let newGroup = this.#groupRows === 0;
      if (isRow) {
        this.#checkBounds();
        const order = this.#compareToLast();
        if (order < 0 && !unsorted) throw this.#outOfOrder();
        if (order === 0 && !isNumbering) {
          if (!this.#isDouble(at, lineEnd)) throw this.#duplicate();
          this.answer.doubled++;
          this.#unread = lineEnd + 1;
          continue;
        }
        newGroup ||=
          this.#groupTail === 0 &&
          (this.#key.tsLow !== this.#lastLow || this.#key.tsHigh !== this.#lastHigh) &&
          (this.#step === 1 || !this.#isSameStep());
      }
      if (isNumbering && newGroup && this.#groupRows > 0 && this.#numberGroup()) {
        filled = this.#buffer!.subarray(0, this.#end);
        continue;
      }
      // where the line will be placed
      const start = this.#scanned;
      const stop = start + length + 1;
      // if the rows of one timestamp outgrow the segment, the cut comes after them
      if ((newGroup || unsorted) && start > segmentBytes) {
        yield await cut(start, this.#rows, this.#newGroupTs(isRow));
        continue;
      }
      if (newGroup) {
        if (stop > segmentBytes && start > 0) {
          yield await cut(start, this.#rows, this.#newGroupTs(isRow));
          continue;
        }
        this.#beginGroup(start);
        const begin = isRow ? this.#groupBegin() : this.#asked;
        this.#groupHigh = begin.high;
        this.#groupLow = begin.low;
        // if the same group was requested again, the timestamp before it is already known
        if (this.#anyRow && (this.#groupLow !== this.#lastLow || this.#groupHigh !== this.#lastHigh))
          this.#before.add(this.#lastHigh, this.#lastLow);
        if (this.answer.rows > 0) this.#inFirstGroup = false;
        else Object.assign(this.answer, { first: this.#groupTs(), isRowFirst: isRow });
      } else if (stop > segmentBytes && (unsorted ? start : this.#groupStart) > 0) {
        if (unsorted) yield await cut(start, this.#rows, undefined);
        else yield await cut(this.#groupStart, this.#rows - this.#groupRows, this.#groupTs());
        continue;
      } else if (stop + (isNumbering ? 8 * this.#groupRows : 0) > this.#options.mostBytes) {
        throw this.#groupTooLarge();
      }
      if (isRow) {
        this.#anyRow = true;
        this.#isChunkStart = false;
        this.#lastHigh = this.#key.tsHigh;
        this.#lastLow = this.#key.tsLow;
        this.#lastSeqHigh = this.#key.seqHigh;
        this.#lastSeqLow = this.#key.seqLow;
        this.#groupKeys = Math.imul(
          Math.imul(this.#groupKeys ^ this.#lastSeqHigh, 31) ^ this.#lastSeqLow,
          mixer,
        );
        this.#groupTail = 0;
      } else {
        this.#setAside(at, lineEnd);
        this.#groupTail++;
        this.#hasOdd = true;
      }
      if (at > start) filled.copyWithin(start, at, lineEnd + 1);
      this.#scanned = stop;
      this.#unread = lineEnd + 1;
      this.#rows++;
      this.#groupRows++;
      this.totalRows++;
      if (length > this.#groupLongest) this.#groupLongest = length;
      this.answer.rows++;
      if (this.#inFirstGroup) {
        this.answer.firstRows++;
        this.answer.firstKeys = this.#groupKeys;
      }
    }
  }

  /** Counts a line that is not a row. Throws if there are too many of them to be damaged rows. */
  #setAside(start: number, end: number): void {
    if (this.#numbers !== "given") this.#refuseNumbered(start, end);
    if (this.#oddLines === 0)
      this.#firstOdd = rowText(this.#buffer!.toString("utf8", start, Math.min(end, start + 4096)));
    this.#oddLines++;
    this.#oddBytes += end - start;
    const rows = this.answer.rows + 1 - this.#oddLines;
    if (this.#oddLines <= mostOddLines + rows + this.#oddBytes / leastRowBytes) return;
    throw new RunvaultError(
      "malformed_row",
      `an answer has more than ${mostOddLines} lines that are not rows, besides ${countText(rows, "row")}; the first: ${this.#firstOdd}`,
      { hint: "The gateway sends something other than rows: look at its answer with curl." },
    );
  }

  /** Throws if a line has a seq although its source has none: it could be taken for a row numbered here. */
  #refuseNumbered(start: number, end: number): void {
    const seq = parseObject(this.#buffer!, start, end)?.seq;
    if (typeof seq !== "string" || seq === "") return;
    throw new RunvaultError(
      "malformed_row",
      `a row has seq ${JSON.stringify(seq)}, although the profile says that rows have none: ${rowText(this.#buffer!.toString("utf8", start, Math.min(end, start + 4096)))}`,
      { hint: "Give seq the gateway's field in the profile, in place of `derived`." },
    );
  }

  /** Drops everything after these bytes. */
  #cutBack(bytes: number): void {
    this.#end = this.#scanned = this.#unread = bytes;
    this.#searched = 0;
  }

  /** Moves the unread bytes up to the scanned ones, over the blank lines between them. */
  #closeUp(): void {
    const gap = this.#unread - this.#scanned;
    if (gap === 0) return;
    this.#buffer!.copyWithin(this.#scanned, this.#unread, this.#end);
    this.#end -= gap;
    this.#unread -= gap;
    this.#searched -= gap;
  }

  /** Numbers the rows of the last group, which is complete. True if the current line must be read again. */
  #numberGroup(): boolean {
    if (this.#numbers === "given" || this.#groupRows === 0 || this.#isNumbered) return false;
    this.#isNumbered = true;
    const start = this.#groupStart;
    if (this.#groupRows === 1) {
      if (this.#groupTail === 1) return false;
      const isMoved = this.#makeRoom(1);
      const at = start + this.#key.seqAt;
      this.#buffer!.copyWithin(at + 1, at, this.#scanned);
      this.#buffer![at] = zero;
      this.#scanned++;
      this.#groupLongest++;
      return isMoved;
    }
    const { text, longestLine } = numberedGroup(
      this.#key,
      this.#buffer!,
      { start, end: this.#scanned },
      this.#numbers,
      !this.#hasOdd && this.#step === 1,
    );
    this.#makeRoom(start + text.byteLength - this.#scanned);
    this.#buffer!.set(text, start);
    this.#scanned = start + text.byteLength;
    this.#groupLongest = longestLine;
    return true;
  }

  /** Reserves this many bytes before the unread part. True if bytes were moved. */
  #makeRoom(bytes: number): boolean {
    const gap = this.#unread - this.#scanned;
    if (gap >= bytes) return false;
    // usually enough for all the bytes that are here
    const more = Math.max(bytes, (this.#end - this.#unread) >> 4) - gap;
    let buffer = this.#buffer!;
    if (this.#end + more > buffer.byteLength) buffer = this.#grow(this.#end + more);
    buffer.copyWithin(this.#unread + more, this.#unread, this.#end);
    this.#unread += more;
    this.#end += more;
    this.#searched += more;
    return true;
  }

  #beginGroup(start: number): void {
    this.#isNumbered = false;
    this.#hasOdd = false;
    this.#groupStart = start;
    this.#groupRows = this.#groupKeys = 0;
    this.#groupTail = 0;
    this.#longest = Math.max(this.#longest, this.#groupLongest);
    this.#groupLongest = 0;
  }

  #groupTs(): Nanoseconds {
    return toNanoseconds({ high: this.#groupHigh, low: this.#groupLow });
  }

  /** Where to request the group that begins with the current line. */
  #newGroupTs(isRow: boolean): Nanoseconds {
    return toNanoseconds(isRow ? this.#groupBegin() : this.#asked);
  }

  /** Whether the row lies in the same unit as the row before, so neither can be requested without the other. */
  #isSameStep(): boolean {
    const { tsHigh, tsLow } = this.#key;
    const a = stepOf(tsHigh, tsLow, this.#step);
    const b = stepOf(this.#lastHigh, this.#lastLow, this.#step);
    return a.high === b.high && a.low === b.low;
  }

  /** Where to request the group that begins with the row: at the start of its unit, not before the answer's start. */
  #groupBegin(): Instant {
    const { tsHigh: high, tsLow: low } = this.#key;
    if (this.#step === 1) return { high, low };
    const begin = stepOf(high, low, this.#step);
    return isAhead(begin.high, begin.low, this.#asked) ? this.#asked : begin;
  }

  /** ts_event of the newest row; undefined if there was never one. */
  get lastTs(): Nanoseconds | undefined {
    return this.#anyRow ? toNanoseconds({ high: this.#lastHigh, low: this.#lastLow }) : undefined;
  }

  /** Timestamps before the last group. */
  get before(): Pick<LastTimes, "newest" | "steps"> {
    return this.#before;
  }

  async #cut(bytes: number, rows: number, next: Nanoseconds | undefined): Promise<Cut> {
    const { pool } = this.#options;
    this.#closeUp();
    const full = this.#buffer!;
    const rest = this.#end - bytes;
    const all = rows === this.#rows;
    const longestLine = all ? Math.max(this.#longest, this.#groupLongest) : this.#longest;
    if (next === undefined && rest === 0) {
      this.#buffer = undefined;
    } else {
      let fresh = await pool.acquire();
      if (rest > fresh.byteLength) fresh = Buffer.allocUnsafe(rest + 64 * 1024);
      full.copy(fresh, 0, bytes, this.#end);
      this.#use(fresh);
    }
    this.#end = rest;
    this.#scanned -= bytes;
    this.#unread -= bytes;
    this.#searched = 0;
    this.#groupStart = Math.max(0, this.#groupStart - bytes);
    this.#rows -= rows;
    this.#longest = 0;
    if (all) this.#groupRows = this.#groupTail = this.#groupLongest = 0;
    return { text: full.subarray(0, bytes), release: () => pool.release(full), rows, longestLine, next };
  }

  #grow(needed: number): Buffer {
    const { mostBytes } = this.#options;
    if (needed > mostBytes + longestLineBytes + (1 << 20)) throw this.#groupTooLarge();
    const bigger = Buffer.allocUnsafe(Math.max(needed + 64 * 1024, this.#buffer!.byteLength * 2));
    this.#buffer!.copy(bigger, 0, 0, this.#end);
    // the bigger buffer takes the smaller one's place in the pool
    return this.#use(bigger);
  }

  #use(buffer: Buffer): Buffer {
    this.#buffer = buffer;
    this.#key.use(buffer);
    return buffer;
  }

  #stripByteOrderMark(): void {
    this.#atAnswerStart = false;
    const buffer = this.#buffer!;
    const at = this.#unread;
    if (buffer[at] !== 0xef || buffer[at + 1] !== 0xbb || buffer[at + 2] !== 0xbf) return;
    buffer.copyWithin(at, at + 3, this.#end);
    this.#end -= 3;
    this.#searched = 0;
  }

  /** Whether a line lies outside bounds that could not be sent. In a sorted answer, such rows come first or last. */
  #isLeftOut(isRow: boolean, { early, late }: { readonly early: boolean; readonly late: boolean }): boolean {
    if (!isRow) return this.#beyond !== undefined;
    const { tsHigh: high, tsLow: low } = this.#key;
    // negated: NaN, for no row yet, also passes
    if (!(high - this.#seenFirstHigh > 0 || (high === this.#seenFirstHigh && low >= this.#seenFirstLow))) {
      this.#seenFirstHigh = high;
      this.#seenFirstLow = low;
    }
    if (!(high - this.#seenLastHigh < 0 || (high === this.#seenLastHigh && low <= this.#seenLastLow))) {
      this.#seenLastHigh = high;
      this.#seenLastLow = low;
    }
    const before = this.#beyond;
    this.#beyond = undefined;
    if (early && isAhead(high, low, this.#asked)) this.#beyond = "early";
    else if (late && this.#to !== undefined && !isAhead(high, low, this.#to)) this.#beyond = "late";
    if (!this.#options.unsorted) {
      if ((before === "late" && this.#beyond !== "late") || (this.#isAnyKept && this.#beyond === "early"))
        throw new OutOfOrder("a row belongs before the row that came before it");
      // lines before it that are not rows are left out with it
      if (this.#beyond === "early" && this.#groupTail > 0) this.#forgetTail();
    }
    if (this.#beyond === undefined) this.#isAnyKept = true;
    else this.answer.leftOut++;
    return this.#beyond !== undefined;
  }

  /** Drops the answer's lines so far, none of which is a row. */
  #forgetTail(): void {
    this.#scanned = this.#groupStart;
    this.#rows -= this.#groupTail;
    this.totalRows -= this.#groupTail;
    this.#groupRows = this.#groupTail = this.#groupLongest = 0;
    const { leftOut, isJoined } = this.answer;
    this.answer = { ...emptyAnswer(), leftOut, isJoined };
    this.#inFirstGroup = true;
  }

  #checkBounds(): void {
    const high = this.#key.tsHigh;
    const low = this.#key.tsLow;
    const from = this.#numbers === "given" || this.#options.unsorted ? this.#from : this.#asked;
    const to = this.#to;
    const early = from !== undefined && isAhead(high, low, from);
    const late = to !== undefined && !isAhead(high, low, to);
    if (!early && !late) return;
    throw this.#outside(from);
  }

  /** The line's row is outside of bounds; `from` may be the answer's. */
  #outside(from: Instant | undefined): RunvaultError {
    const { stepNs } = this.#options;
    const bounds = { from: from === undefined ? undefined : toNanoseconds(from), to: this.#options.to };
    const outside = new OutsideBounds(
      toNanoseconds({ high: this.#key.tsHigh, low: this.#key.tsLow }),
      bounds,
    );
    return outsideWindow(outside, whyByRow(outside, stepNs));
  }

  /** A row out of order; if it lies before the requested window, its cause says that it is out of bounds. */
  #outOfOrder(): OutOfOrder {
    const isAsked = this.#options.leavesOut?.early !== true;
    const isBefore = isAhead(this.#key.tsHigh, this.#key.tsLow, this.#asked);
    return new OutOfOrder("a row belongs before the row that came before it", {
      cause: isAsked && isBefore ? this.#outside(this.#asked) : undefined,
    });
  }

  /** The order of the line's key against the row before: negative, 0 for the same key, positive. */
  #compareToLast(): number {
    if (!this.#anyRow) return 1;
    return (
      this.#key.tsHigh - this.#lastHigh ||
      this.#key.tsLow - this.#lastLow ||
      this.#key.seqHigh - this.#lastSeqHigh ||
      this.#key.seqLow - this.#lastSeqLow
    );
  }

  /** Whether a line with the key of the row before it repeats that row, in the same body. */
  #isDouble(at: number, lineEnd: number): boolean {
    const { rows, doubled, isJoined } = this.answer;
    const isAhead = rows > 0 && this.#groupTail === 0 && !(isJoined && this.#isChunkStart);
    if (!this.#options.mergesDoubles || !isAhead || doubled >= mostDoubled + rows) return false;
    // rows with the same key are never separated by a cut
    const stop = this.#scanned - 1;
    const start = stop - (lineEnd - at);
    const isWhole = start === 0 || this.#buffer![start - 1] === newline;
    return start >= 0 && isWhole && this.#buffer!.compare(this.#buffer!, at, lineEnd, start, stop) === 0;
  }

  #duplicate(): RunvaultError {
    const { ts, seq } = this.#key;
    return new RunvaultError("duplicate_row", `two rows share ts_event ${ts} and seq ${seq}`, {
      hint: "Report it to the gateway's operator: it gives two rows the same seq, or repeats a row after others or where its pages meet.",
    });
  }

  #lineTooLong(): RunvaultError {
    return lineTooLong("line", this.lastTs === undefined ? {} : { slice: `after ts_event ${this.lastTs}` });
  }

  #groupTooLarge(): RunvaultError {
    const first = this.#groupTs();
    const last = this.lastTs;
    const size = `${this.#options.mostBytes >> 20} MiB`;
    if (first === last) {
      return new RunvaultError("timestamp_capped", `the rows at ts_event ${first} together exceed ${size}`);
    }
    return new RunvaultError(
      "malformed_row",
      `from ts_event ${first} on, so many lines have no ts_event or seq that the place of ${size} of rows is unknown`,
      { hint: "Have the gateway's operator correct these rows." },
    );
  }
}

/** Space reserved before the unread lines, for the numbers of single-row groups. */
const leastRoom = 32;
const zero = 48;
/** An odd number with many bits, which spreads the bits of a seq. */
const mixer = 0x9e3779b1;

function isAhead(high: number, low: number, of: Instant): boolean {
  return high < of.high || (high === of.high && low < of.low);
}

/** The beginning of the unit in which a time lies, for units that divide a second. */
function stepOf(high: number, low: number, step: number): Instant {
  const begin = Math.floor(low / step) * step;
  // instants are rounded towards zero
  return begin <= -1e9 ? { high: high - 1, low: begin + 1e9 } : { high, low: begin };
}

function emptyAnswer(): AnswerStats {
  return {
    ...{ rows: 0, first: undefined, isRowFirst: false, firstRows: 0, firstKeys: 0 },
    ...{ leftOut: 0, doubled: 0, isJoined: false },
  };
}
