import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import type { Nanoseconds } from "../model/time.ts";
import { nsPerSecond } from "../model/time.ts";

/** Longest line a row may be. */
export const longestLineBytes = 16 * 1024 * 1024;

const newline = 10;
const quote = 34;

/** A run of whole timestamp groups, cut off the front of the text. */
export interface Cut {
  readonly text: Buffer;
  readonly rows: number;
  readonly longestLine: number;
  /** The ts_event of the first row behind the cut; undefined at the end. */
  readonly next: Nanoseconds | undefined;
}

/** What one answer brought. */
export interface AnswerStats {
  rows: number;
  first: Nanoseconds | undefined;
  last: Nanoseconds | undefined;
  /** Rows at `last`. */
  lastRows: number;
}

/** Thrown when a row comes before one that is already here: the caller starts the slice over, unsorted. */
export class OutOfOrder extends Error {}

export interface SegmentTextOptions {
  readonly run: RunRef;
  readonly from: Nanoseconds | undefined;
  readonly to: Nanoseconds | undefined;
  /** Cut when the text would grow beyond this. */
  readonly segmentBytes: number;
  /** Most a single timestamp's rows may take. */
  readonly mostBytes: number;
  /** Rows are taken in any order; cuts fall on any line end. */
  readonly unsorted: boolean;
  /** Takes a buffer of at least `segmentBytes` for the text; given back with the cut that holds it. */
  readonly allocate: () => Promise<Buffer>;
  readonly release: (buffer: Buffer) => void;
  /** Receives each cut as soon as it is whole. The buffer under it is the receiver's to release. */
  readonly emit: (cut: Cut, buffer: Buffer) => Promise<void>;
}

/**
 * Gathers the lines of answers and cuts them into segments at timestamp boundaries, watching identity, bounds and
 * order of every row on the way. Where a cut falls depends on the rows alone, not on how the bytes arrived, so that an
 * interrupted job cuts where an undisturbed one does.
 *
 * The usual line starts with run_id, instance_id, seq and ts_event as the canonical line has them; these are read in
 * place without making a string. Any other line is parsed as JSON. A line that is no row at all counts to the
 * timestamp before it; the conversion decides what becomes of it.
 */
export class SegmentText {
  readonly #options: SegmentTextOptions;
  readonly #prefix: DataView;
  readonly #tsKey = Buffer.from('","ts_event":"');
  readonly #from: Instant | undefined;
  readonly #to: Instant | undefined;
  #buffer: Buffer | undefined;
  #view: DataView | undefined;
  /** Bytes filled, bytes scanned (always a line start), and where the last timestamp's rows start. */
  #end = 0;
  #scanned = 0;
  #groupStart = 0;
  #rows = 0;
  #groupRows = 0;
  /** Longest line ahead of the last timestamp's rows, and among them. */
  #longest = 0;
  #groupLongest = 0;
  #last: Instant | undefined;
  #lastSeqHigh = 0;
  #lastSeqLow = 0;
  #atAnswerStart = true;
  // the key of the line being read, filled by #readKey: two numbers each, since neither fits into one exactly
  #tsHigh = 0;
  #tsLow = 0;
  #seqHigh = 0;
  #seqLow = 0;
  /** Rows taken in, dropped ones not counted. */
  totalRows = 0;
  answer: AnswerStats = emptyAnswer();

  constructor(options: SegmentTextOptions) {
    this.#options = options;
    const { instanceId, runId } = options.run;
    const ids = `{"run_id":${JSON.stringify(runId)},"instance_id":${JSON.stringify(instanceId)},"seq":"`;
    this.#prefix = viewOf(Buffer.from(ids));
    this.#from = options.from === undefined ? undefined : instantOf(options.from);
    this.#to = options.to === undefined ? undefined : instantOf(options.to);
  }

  beginAnswer(): void {
    this.answer = emptyAnswer();
    this.#atAnswerStart = true;
  }

  /** Takes bytes of the answer in. Resolves when the cuts they led to have been received. */
  async push(chunk: Uint8Array): Promise<void> {
    let buffer = this.#buffer ?? (await this.#options.allocate());
    this.#buffer = buffer;
    if (this.#end + chunk.byteLength > buffer.byteLength) buffer = this.#grow(this.#end + chunk.byteLength);
    buffer.set(chunk, this.#end);
    this.#end += chunk.byteLength;
    if (this.#atAnswerStart && this.#end - this.#scanned >= 3) this.#stripByteOrderMark();
    await this.#scan();
  }

  /**
   * Ends an answer that the source ended whole. A last line without its line end is taken when it is a row; else the
   * answer was cut inside it: throws `stream_cut`.
   */
  async endAnswer(): Promise<void> {
    const rest = this.#end - this.#scanned;
    if (rest === 0) return;
    const tail = this.#buffer!.subarray(this.#scanned, this.#end).toString("utf8");
    if (tail.trim() !== "" && parseObject(tail) === null) {
      throw new RunvaultError("stream_cut", "the answer ends inside a line", {
        hint: "The gateway cut its answer.",
      });
    }
    await this.push(Buffer.from("\n"));
  }

  /**
   * Forgets the rows that share the last timestamp, and any torn line behind them: an answer that ended early, or may
   * have, says nothing about whether these are all. Gives the timestamp to ask again from, with the rows forgotten;
   * undefined when nothing is held.
   */
  dropLastGroup(): { ts: Nanoseconds; rows: number } | undefined {
    this.#end = this.#scanned;
    if (this.#last === undefined || this.#groupRows === 0) return undefined;
    const dropped = { ts: toNanoseconds(this.#last), rows: this.#groupRows };
    this.#end = this.#groupStart;
    this.#scanned = this.#groupStart;
    this.#rows -= this.#groupRows;
    this.totalRows -= this.#groupRows;
    this.#groupRows = 0;
    this.#groupLongest = 0;
    // the next row is at this timestamp again, from its first seq on
    this.#lastSeqHigh = -1;
    this.#lastSeqLow = -1;
    return dropped;
  }

  /** The held rows of the last timestamp, as text. */
  lastGroup(): Buffer {
    return Buffer.from(this.#buffer?.subarray(this.#groupStart, this.#scanned) ?? []);
  }

  /** Cuts off all that is left. */
  async finish(): Promise<void> {
    if (this.#rows > 0) await this.#cut(this.#scanned, this.#rows, undefined);
    this.discard();
  }

  /** Lets go of the buffer and of what is in it. */
  discard(): void {
    if (this.#buffer !== undefined) this.#options.release(this.#buffer);
    this.#buffer = undefined;
    this.#end = this.#scanned = this.#groupStart = 0;
    this.#rows = this.#groupRows = 0;
    this.#longest = this.#groupLongest = 0;
  }

  async #scan(): Promise<void> {
    const { segmentBytes, unsorted } = this.#options;
    for (;;) {
      const buffer = this.#buffer!;
      if (this.#view?.buffer !== buffer.buffer) this.#view = viewOf(buffer);
      const start = this.#scanned;
      const lineEnd = buffer.indexOf(newline, start);
      if (lineEnd < 0 || lineEnd >= this.#end) {
        if (this.#end - start > longestLineBytes) throw this.#lineTooLong();
        return;
      }
      const length = lineEnd - start;
      if (length > longestLineBytes) throw this.#lineTooLong();
      if (isBlank(buffer, start, lineEnd)) {
        // a blank line is no row: it leaves the text
        buffer.copyWithin(start, lineEnd + 1, this.#end);
        this.#end -= length + 1;
        continue;
      }
      const isRow = this.#readKey(buffer, start, lineEnd);
      let newGroup = this.#last === undefined;
      if (isRow) {
        this.#checkBounds();
        const order = this.#compareToLast();
        if (order < 0 && !unsorted) throw new OutOfOrder("a row comes before the row ahead of it");
        if (order === 0) throw this.#duplicate();
        const last = this.#last;
        newGroup ||= last!.high !== this.#tsHigh || last!.low !== this.#tsLow;
      }
      // where one timestamp's rows outgrew the segment, the cut falls where they end
      if ((newGroup || unsorted) && start > segmentBytes) {
        await this.#cut(start, this.#rows, isRow ? this.#keyTs() : undefined);
        continue;
      }
      if (newGroup) {
        if (lineEnd + 1 > segmentBytes && start > 0) {
          await this.#cut(start, this.#rows, isRow ? this.#keyTs() : undefined);
          continue;
        }
        this.#groupStart = start;
        this.#groupRows = 0;
        this.#longest = Math.max(this.#longest, this.#groupLongest);
        this.#groupLongest = 0;
      } else if (lineEnd + 1 > segmentBytes && (unsorted ? start : this.#groupStart) > 0) {
        if (unsorted) await this.#cut(start, this.#rows, undefined);
        else await this.#cut(this.#groupStart, this.#rows - this.#groupRows, toNanoseconds(this.#last!));
        continue;
      } else if (lineEnd + 1 > this.#options.mostBytes) {
        throw this.#groupTooLarge();
      }
      if (isRow) {
        if (newGroup || this.#last === undefined) this.#last = { high: this.#tsHigh, low: this.#tsLow };
        this.#lastSeqHigh = this.#seqHigh;
        this.#lastSeqLow = this.#seqLow;
      }
      this.#scanned = lineEnd + 1;
      this.#rows++;
      this.#groupRows++;
      this.totalRows++;
      if (length > this.#groupLongest) this.#groupLongest = length;
      this.#countAnswer(isRow);
    }
  }

  #countAnswer(isRow: boolean): void {
    const { answer } = this;
    answer.rows++;
    if (!isRow) return;
    if (answer.first === undefined) answer.first = this.#keyTs();
    answer.lastRows = this.#groupRows;
  }

  /** ts_event of the newest row held; undefined when none was ever held. */
  get lastTs(): Nanoseconds | undefined {
    return this.#last === undefined ? undefined : toNanoseconds(this.#last);
  }

  async #cut(bytes: number, rows: number, next: Nanoseconds | undefined): Promise<void> {
    const full = this.#buffer!;
    const rest = this.#end - bytes;
    const all = rows === this.#rows;
    const longestLine = all ? Math.max(this.#longest, this.#groupLongest) : this.#longest;
    const cut = { text: full.subarray(0, bytes), rows, longestLine, next };
    if (next === undefined && rest === 0) {
      this.#buffer = undefined;
    } else {
      let fresh = await this.#options.allocate();
      if (rest > fresh.byteLength) fresh = Buffer.allocUnsafe(rest + 64 * 1024);
      full.copy(fresh, 0, bytes, this.#end);
      this.#buffer = fresh;
    }
    this.#end = rest;
    this.#scanned -= bytes;
    this.#groupStart = Math.max(0, this.#groupStart - bytes);
    this.#rows -= rows;
    this.#groupRows = Math.min(this.#groupRows, this.#rows);
    this.#longest = 0;
    if (all) this.#groupLongest = 0;
    await this.#options.emit(cut, full);
  }

  #grow(needed: number): Buffer {
    const { mostBytes } = this.#options;
    if (needed > mostBytes + longestLineBytes + (1 << 20)) throw this.#groupTooLarge();
    const bigger = Buffer.allocUnsafe(Math.max(needed + 64 * 1024, this.#buffer!.byteLength * 2));
    this.#buffer!.copy(bigger, 0, 0, this.#end);
    // the bigger buffer takes the smaller one's place in the pool
    this.#buffer = bigger;
    return bigger;
  }

  #stripByteOrderMark(): void {
    this.#atAnswerStart = false;
    const buffer = this.#buffer!;
    const at = this.#scanned;
    if (buffer[at] !== 0xef || buffer[at + 1] !== 0xbb || buffer[at + 2] !== 0xbf) return;
    buffer.copyWithin(at, at + 3, this.#end);
    this.#end -= 3;
  }

  /** Reads ts_event and seq of a line; false where it is no row. Throws where it is another run's. */
  #readKey(buffer: Buffer, start: number, end: number): boolean {
    const seqAt = start + this.#prefix.byteLength;
    // longer than the key's longest form, so that no index below runs past the line
    if (seqAt + 60 < end && this.#startsCanonically(start)) {
      let at = seqAt;
      let byte = buffer[at]!;
      let high = 0;
      let low = 0;
      while (isDigit(byte)) {
        // the last fifteen digits and those ahead of them, each exact in a number
        if (at - seqAt < 15) low = low * 10 + byte - 48;
        else {
          high = high * 10 + Math.floor(low / 1e14);
          low = (low % 1e14) * 10 + byte - 48;
        }
        byte = buffer[++at]!;
      }
      if (at > seqAt && at - seqAt <= 20 && this.#tsKeyStands(buffer, at)) {
        const tsAt = at + this.#tsKey.length;
        at = tsAt;
        while (isDigit(buffer[at]!)) at++;
        if (at > tsAt && at - tsAt <= 19 && buffer[at] === quote) {
          this.#seqHigh = high;
          this.#seqLow = low;
          this.#tsHigh = numberAt(buffer, tsAt, at - 9);
          this.#tsLow = numberAt(buffer, Math.max(tsAt, at - 9), at);
          return true;
        }
      }
    }
    return this.#readKeySlowly(buffer.toString("utf8", start, end));
  }

  /** True when the line begins with this run's ids and the key of seq, byte for byte; compared four bytes at a time. */
  #startsCanonically(start: number): boolean {
    const prefix = this.#prefix;
    const view = this.#view!;
    const length = prefix.byteLength;
    let at = 0;
    for (; at + 4 <= length; at += 4) {
      if (view.getInt32(start + at, true) !== prefix.getInt32(at, true)) return false;
    }
    for (; at < length; at++) if (view.getUint8(start + at) !== prefix.getUint8(at)) return false;
    return true;
  }

  #tsKeyStands(buffer: Buffer, at: number): boolean {
    const key = this.#tsKey;
    for (let i = 0; i < key.length; i++) if (buffer[at + i] !== key[i]) return false;
    return true;
  }

  #readKeySlowly(line: string): boolean {
    const row = parseObject(line);
    if (row === null) return false;
    const { instanceId, runId } = this.#options.run;
    if (
      (typeof row.run_id === "string" && row.run_id !== runId) ||
      (typeof row.instance_id === "string" && row.instance_id !== instanceId)
    ) {
      throw new RunvaultError(
        "history_identity_conflict",
        `a row belongs to ${String(row.instance_id)}/${String(row.run_id)}: ${line.slice(0, 300)}`,
        { hint: "The gateway answered with another run's rows; nothing of this table was taken." },
      );
    }
    if (typeof row.ts_event !== "string" || !/^-?\d{1,19}$/.test(row.ts_event)) return false;
    if (typeof row.seq !== "string" || !/^\d{1,20}$/.test(row.seq)) return false;
    const instant = instantOf(BigInt(row.ts_event));
    this.#tsHigh = instant.high;
    this.#tsLow = instant.low;
    const seq = BigInt(row.seq);
    this.#seqHigh = Number(seq / 1_000_000_000_000_000n);
    this.#seqLow = Number(seq % 1_000_000_000_000_000n);
    return true;
  }

  #checkBounds(): void {
    const [high, low] = [this.#tsHigh, this.#tsLow];
    const from = this.#from;
    const to = this.#to;
    const early = from !== undefined && (high < from.high || (high === from.high && low < from.low));
    const late = to !== undefined && (high > to.high || (high === to.high && low >= to.low));
    if (!early && !late) return;
    throw new RunvaultError(
      "history_identity_conflict",
      `a row at ${this.#keyTs()} lies outside the window asked for, [${this.#options.from ?? ""}, ${this.#options.to ?? ""})`,
      { hint: "The gateway does not keep to time bounds; nothing of this table was taken." },
    );
  }

  /** The order of the line's key against the row before: negative, 0 for the same key, positive. */
  #compareToLast(): number {
    const last = this.#last;
    if (last === undefined) return 1;
    return (
      this.#tsHigh - last.high ||
      this.#tsLow - last.low ||
      this.#seqHigh - this.#lastSeqHigh ||
      this.#seqLow - this.#lastSeqLow
    );
  }

  #keyTs(): Nanoseconds {
    return toNanoseconds({ high: this.#tsHigh, low: this.#tsLow });
  }

  #duplicate(): RunvaultError {
    const seq = BigInt(this.#seqHigh) * 1_000_000_000_000_000n + BigInt(this.#seqLow);
    return new RunvaultError("duplicate_row", `two rows share ts_event ${this.#keyTs()} and seq ${seq}`, {
      hint: "The gateway sends a row twice, or numbers two rows alike; nothing is de-duplicated here.",
    });
  }

  #lineTooLong(): RunvaultError {
    return new RunvaultError("line_too_long", `a line is longer than ${longestLineBytes >> 20} MiB`, {
      place: this.#last === undefined ? {} : { slice: `after ts_event ${toNanoseconds(this.#last)}` },
    });
  }

  #groupTooLarge(): RunvaultError {
    return new RunvaultError(
      "timestamp_capped",
      `the rows at ts_event ${this.#last === undefined ? "?" : toNanoseconds(this.#last)} take more than ${this.#options.mostBytes >> 20} MiB`,
    );
  }
}

/** An int64 of nanoseconds as two exact numbers: whole seconds, rounded towards zero, and the rest. */
interface Instant {
  readonly high: number;
  readonly low: number;
}

function instantOf(ns: Nanoseconds): Instant {
  return { high: Number(ns / nsPerSecond), low: Number(ns % nsPerSecond) };
}

function toNanoseconds(instant: Instant): Nanoseconds {
  return BigInt(instant.high) * nsPerSecond + BigInt(instant.low);
}

function emptyAnswer(): AnswerStats {
  return { rows: 0, first: undefined, last: undefined, lastRows: 0 };
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57;
}

/** The digits in [start, end) as a number; 0 where there are none. At most 15 digits are asked for. */
function numberAt(buffer: Buffer, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i++) value = value * 10 + buffer[i]! - 48;
  return value;
}

function isBlank(buffer: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = buffer[i];
    if (byte !== 13 && byte !== 32 && byte !== 9) return false;
  }
  return true;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
