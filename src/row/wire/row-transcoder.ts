import type { Column, Table } from "../../model/profile/table.ts";
import { canonicalDouble, lineTooLong, longestLineBytes } from "../line.ts";
import { writeInt64, writeShortDouble, writeUint53, writeUint64 } from "./decimal-digits.ts";
import { escapedBytes, writeEscaped, writePlain } from "./json-text.ts";
import type { PageIndex } from "./page-index.ts";
import { rowMessage } from "./row-message.ts";
import { keepUnknown, type UnknownPieces, unknownMembers } from "./unknown-members.ts";
import { WideVarint } from "./wide-varint.ts";
import { malformed, truncated, WireCursor, wireType } from "./wire-cursor.ts";

/** A row's place in key order: ts_event, signed, and seq, unsigned, as 32-bit halves. */
export interface WireKey {
  readonly tsHigh: number;
  readonly tsLow: number;
  readonly seqHigh: number;
  readonly seqLow: number;
}

/** How a column is taken from a row of a foreign message. */
export type WireColumn =
  /** A field with the column's own type, by number. */
  | { readonly number: number }
  /** The same in a coarser unit of 10^zeros nanoseconds. */
  | { readonly number: number; readonly zeros: number }
  /** A double for an exact column: its printed decimal. */
  | { readonly number: number; readonly isDouble: true }
  /** An enum or bool field: the inside of a JSON string for each number. */
  | { readonly number: number; readonly words: ReadonlyMap<number, string>; readonly isBool: boolean }
  /** The same text in every row: the inside of a JSON string, or a number's text. */
  | { readonly text: string };

/**
 * Makes the whole line of a row that these columns cannot handle: a number without a word, a time beyond 64 bits, an
 * invalid decimal or one with an exponent, a double that is NaN or infinite.
 */
export type OddRow = (index: PageIndex, start: number, end: number) => Uint8Array;

/** Thrown for an odd row, and caught where the row begins. */
const odd = new Error("an odd row");

/** A page's rows as canonical lines. */
export interface PageLines {
  /** Whole lines, each with its end. */
  readonly chunks: readonly Uint8Array[];
  readonly rows: number;
  /** Key of the first row; undefined if there are no rows, or nothing tells it. */
  readonly first: WireKey | undefined;
}

// how a value is written; numbers, because the loop looks one up for every value
const textKind = 0;
const uint64Kind = 1;
const int64Kind = 2;
const seqKind = 3;
const tsEventKind = 4;
const uint32Kind = 5;
const doubleKind = 6;
const unitKind = 7;
const enumKind = 8;
const boolKind = 9;
/** For foreign messages; the default contract's decimals are already canonical. */
const exactKind = 10;
const exactDoubleKind = 11;

const int64Max = 2n ** 63n - 1n;

// like REST's chunks, for which the reader's buffers are sized
const chunkBytes = 512 * 1024;
/** Most bytes of a value that is not a text: a double has 25 at most, an integer 20, and words are written whole. */
const valueBytes = 32;

/**
 * Converts a page's protobuf rows into canonical lines, directly from wire to text. Rows do not become objects, which
 * would take several times as long (bench/README.md). Only the message's descriptor decides what is written, so a new
 * column needs no code.
 *
 * Fields may come in any order and are written in the descriptor's; missing ones are written as zero. A field outside
 * the contract is drift: it goes to the line's end under `#` and its number, with its original bytes (tag included, in
 * base64), so that nothing is lost and the archive reports it like an unknown key on REST.
 *
 * Throws `malformed_row` for a page that does not fit the descriptor: a wrong wire type, a field set twice, text that
 * is not UTF-8, a number too large for its type, a message that ends inside a field, more than a thousand unknown
 * fields in a row. `line_too_long` above 16 MiB.
 */
export class RowTranscoder {
  readonly #columns: readonly Column[];
  readonly #kinds: Uint8Array;
  /** The text before each column's value, as words: from the end of the previous value to this one's opening quote. */
  readonly #leads: Int32Array;
  readonly #leadAt: Int32Array;
  readonly #leadBytes: Int32Array;
  readonly #tail: Buffer;
  /** Column by tag; -1 for unknown tags. */
  readonly #columnOfTag: Int16Array;
  readonly #columnOfNumber: ReadonlyMap<number, number>;
  readonly #wireTypes: Uint8Array;
  /** Text of constant columns. */
  readonly #fixed: readonly (Buffer | undefined)[];
  readonly #words: readonly (ReadonlyMap<number, Buffer> | undefined)[];
  /** For times in coarser units: the number of zeros to append, and the largest value that fits. */
  readonly #zeros: Uint8Array;
  readonly #mostUnits: Float64Array;
  readonly #oddRow: OddRow | undefined;
  /** Whether the wire's field order differs from the columns'. */
  readonly #isReordered: boolean;
  /** Whether unknown fields go into the member `extra`, as for a profile, or beside the columns. */
  readonly #inExtra: boolean;
  /** Most bytes of a line beside its texts. */
  readonly #fixedBytes: number;
  // where each column's value is, for rows out of order
  readonly #valueAt: Int32Array;
  #page: Uint8Array = new Uint8Array(0);
  #pageView: DataView = new DataView(new ArrayBuffer(0));
  #out: Buffer = Buffer.alloc(0);
  #outView: DataView = new DataView(new ArrayBuffer(0));
  #at = 0;
  readonly #wide = new WideVarint();
  #tsHigh = 0;
  #tsLow = 0;
  #seqHigh = 0;
  #seqLow = 0;

  /** `wire` gives each column's source in a foreign message; `oddRow` makes the lines of its odd rows. */
  constructor(table: Table, wire?: readonly WireColumn[], oddRow?: OddRow) {
    const isStrict = oddRow !== undefined;
    const { columns } = table;
    const sources = wire ?? ownColumns(table);
    const numbers = sources.map((column) => ("number" in column ? column.number : undefined));
    this.#fixed = sources.map((column) => ("text" in column ? Buffer.from(column.text) : undefined));
    this.#oddRow = oddRow;
    this.#words = sources.map((column) =>
      "words" in column
        ? new Map([...column.words].map(([number, text]) => [number, Buffer.from(text)]))
        : undefined,
    );
    this.#zeros = Uint8Array.from(sources, (column) => ("zeros" in column ? column.zeros : 0));
    this.#mostUnits = Float64Array.from(this.#zeros, (zeros) =>
      Math.min(Number.MAX_SAFE_INTEGER, Number(int64Max / 10n ** BigInt(zeros))),
    );
    this.#inExtra = wire !== undefined;
    const inLine = numbers.filter((number) => number !== undefined);
    this.#isReordered = inLine.some((number, i) => i > 0 && number < inLine[i - 1]!);
    this.#columns = columns;
    this.#kinds = Uint8Array.from(columns, (column, i) => kindIn(column, sources[i]!, isStrict));
    const leads = columns.map((column, i) => {
      const before = i === 0 ? "{" : `${isQuoted(columns[i - 1]!) ? '"' : ""},`;
      return Buffer.from(`${before}${JSON.stringify(column.name)}:${isQuoted(column) ? '"' : ""}`);
    });
    this.#leadBytes = Int32Array.from(leads, ({ length }) => length);
    this.#leadAt = new Int32Array(columns.length);
    const words: number[] = [];
    leads.forEach((lead, i) => {
      this.#leadAt[i] = words.length;
      const padded = Buffer.concat([lead, Buffer.alloc(4)]);
      for (let at = 0; at < lead.length; at += 4) words.push(padded.readInt32LE(at));
    });
    this.#leads = Int32Array.from(words);
    this.#tail = Buffer.from(isQuoted(columns.at(-1)!) ? '"}\n' : "}\n");
    this.#wireTypes = Uint8Array.from(columns, (column, i) => wireTypeOf(column, sources[i]!));
    this.#columnOfTag = new Int16Array(16_384).fill(-1);
    const byNumber = new Map<number, number>();
    numbers.forEach((number, i) => {
      if (number === undefined) return;
      byNumber.set(number, i);
      const tag = number * 8 + this.#wireTypes[i]!;
      if (tag < this.#columnOfTag.length) this.#columnOfTag[tag] = i;
    });
    this.#columnOfNumber = byNumber;
    const textBytes = (i: number) => {
      const words = [...(this.#words[i]?.values() ?? [])].map(({ length }) => length);
      return Math.max(this.#fixed[i]?.length ?? 0, ...words);
    };
    this.#fixedBytes = leads.reduce((sum, { length }, i) => sum + length + valueBytes + textBytes(i), 64);
    this.#valueAt = new Int32Array(columns.length);
  }

  /**
   * The lines of a page's first `most` rows, one chunk per step, so that the reader can let others run in between.
   * Either all of them are right or it throws.
   */
  *transcode(index: PageIndex, most = Number.POSITIVE_INFINITY): Generator<number, PageLines> {
    const rows = Math.min(index.rows, most);
    const chunks: Uint8Array[] = [];
    let first: WireKey | undefined;
    for (let row = 0; row < rows; ) {
      // another page may be read between two steps, so nothing of this one is kept
      const filled = this.#fillChunk(index, row, rows);
      first ??= filled.first;
      chunks.push(filled.chunk);
      row = filled.next;
      yield filled.chunk.byteLength;
    }
    return { chunks, rows, first };
  }

  /** Fills one chunk with at least one row, and returns the number of the next row. */
  #fillChunk(index: PageIndex, from: number, rows: number) {
    const { page, places } = index;
    this.#page = page;
    this.#pageView = new DataView(page.buffer, page.byteOffset, page.byteLength);
    let first: WireKey | undefined;
    let row = from;
    for (; row < rows; row++) {
      const start = places[row * 2]!;
      const end = places[row * 2 + 1]!;
      if (end - start > longestLineBytes) throw lineTooLong("row");
      const needed = (end - start) * escapedBytes + this.#fixedBytes;
      if (row === from) this.#useChunk(needed);
      else if (this.#at + needed > this.#out.length) break;
      this.#tsHigh = this.#tsLow = this.#seqHigh = this.#seqLow = 0;
      const lineAt = this.#at;
      if (this.#oddRow === undefined) this.#row(start, end);
      else {
        try {
          this.#row(start, end);
        } catch (thrown) {
          if (thrown !== odd) throw thrown;
          this.#at = lineAt;
          this.#put(this.#oddRow(index, start, end));
        }
      }
      if (this.#at - lineAt - 1 > longestLineBytes) throw lineTooLong("row");
      if (row === from && this.#oddRow === undefined) first = this.#key();
    }
    const chunk = this.#out.subarray(0, this.#at);
    // do not hold page and chunk longer than their reader does
    this.#page = this.#out = Buffer.alloc(0);
    this.#pageView = this.#outView = new DataView(new ArrayBuffer(0));
    return { chunk, first, next: row };
  }

  #row(start: number, end: number): void {
    const lineAt = this.#at;
    if (this.#isReordered ? this.#rowByPlaces(start, end) : this.#rowInOrder(start, end)) return;
    this.#at = lineAt;
    this.#rowInAnyOrder(start, end);
  }

  /** Adds a line that was made elsewhere. */
  #put(line: Uint8Array): void {
    const written = this.#out.subarray(0, this.#at);
    if (this.#at + line.byteLength > this.#out.length) {
      this.#useChunk(written.length + line.byteLength);
      this.#out.set(written);
      this.#at = written.length;
    }
    this.#out.set(line, this.#at);
    this.#at += line.byteLength;
  }

  #useChunk(needed: number): void {
    this.#out = Buffer.allocUnsafeSlow(Math.max(chunkBytes, needed));
    this.#outView = new DataView(this.#out.buffer, this.#out.byteOffset, this.#out.byteLength);
    this.#at = 0;
  }

  #key(): WireKey {
    return {
      tsHigh: this.#tsHigh,
      tsLow: this.#tsLow,
      seqHigh: this.#seqHigh,
      seqLow: this.#seqLow,
    };
  }

  /** The usual row: known fields, once each, in rising order. False if it is not, whatever was already written. */
  #rowInOrder(start: number, end: number): boolean {
    const page = this.#page;
    const columnOfTag = this.#columnOfTag;
    const count = this.#kinds.length;
    let at = start;
    let next = 0;
    while (at < end) {
      let tag = page[at++]!;
      if (tag >= 0x80) tag = (tag & 0x7f) | (page[at++]! << 7);
      const column = tag < 16_384 ? columnOfTag[tag]! : -1;
      if (column < next) return false;
      while (next < column) this.#zero(next++);
      at = this.#value(column, at, end);
      next += 1;
    }
    if (at !== end) throw truncated();
    while (next < count) this.#zero(next++);
    this.#end();
    return true;
  }

  /** The same if fields are in another order than columns: first finds their places. */
  #rowByPlaces(start: number, end: number): boolean {
    const page = this.#page;
    const columnOfTag = this.#columnOfTag;
    const valueAt = this.#valueAt.fill(-1);
    let at = start;
    while (at < end) {
      let tag = page[at++]!;
      if (tag >= 0x80) tag = (tag & 0x7f) | (page[at++]! << 7);
      const column = tag < 16_384 ? columnOfTag[tag]! : -1;
      if (column < 0 || valueAt[column] !== -1) return false;
      valueAt[column] = at;
      const type = tag & 7;
      if (type === wireType.varint) {
        const last = at + 9;
        while (page[at++]! >= 0x80) if (at > last) return false;
      } else if (type === wireType.length) {
        let length = page[at++]!;
        if (length >= 0x80) {
          at = this.#wide.read(this.#page, at - 1);
          if (this.#wide.high !== 0) throw truncated();
          length = this.#wide.low >>> 0;
        }
        at += length;
      } else at += 8;
    }
    if (at !== end) throw truncated();
    for (let column = 0; column < valueAt.length; column++) {
      const place = valueAt[column]!;
      if (place === -1) this.#zero(column);
      else this.#value(column, place, end);
    }
    this.#end();
    return true;
  }

  /** Any other row: finds its fields, then writes them in order, with unknown ones at the end. */
  #rowInAnyOrder(start: number, end: number): void {
    const valueAt = this.#valueAt.fill(-1);
    const cursor = new WireCursor(this.#page, start, end);
    const unknown: UnknownPieces = new Map();
    let unknowns = 0;
    while (cursor.next()) {
      const column = this.#columnOfNumber.get(cursor.number);
      if (column === undefined) {
        keepUnknown(unknown, cursor, this.#page, ++unknowns);
        continue;
      }
      if (cursor.type !== this.#wireTypes[column]) {
        throw malformed(`${this.#columns[column]!.name} has the wrong wire type ${cursor.type}`);
      }
      if (valueAt[column] !== -1) throw malformed(`${this.#columns[column]!.name} is set twice in a row`);
      valueAt[column] = cursor.pos;
      cursor.skip();
    }
    for (let column = 0; column < valueAt.length; column++) {
      const at = valueAt[column]!;
      if (at === -1) this.#zero(column);
      else this.#value(column, at, end);
    }
    if (unknown.size === 0) this.#end();
    else this.#endWithUnknown(unknown);
  }

  #end(): void {
    const out = this.#out;
    const tail = this.#tail;
    let at = this.#at;
    for (let i = 0; i < tail.length; i++) out[at++] = tail[i]!;
    this.#at = at;
  }

  #endWithUnknown(unknown: UnknownPieces): void {
    const members = unknownMembers(unknown);
    const rest = this.#inExtra ? `,"extra":{${members}}` : `,${members}`;
    const text = `${isQuoted(this.#columns.at(-1)!) ? '"' : ""}${rest}}\n`;
    if (this.#out.write(text, this.#at, "latin1") < text.length) throw lineTooLong("row");
    this.#at += text.length;
  }

  #lead(column: number): number {
    const view = this.#outView;
    const leads = this.#leads;
    const bytes = this.#leadBytes[column]!;
    const at = this.#at;
    let word = this.#leadAt[column]!;
    // the last word may exceed the text; the excess is overwritten
    for (let i = 0; i < bytes; i += 4) view.setInt32(at + i, leads[word++]!, true);
    return at + bytes;
  }

  /** The value of a column that is not on the wire. */
  #zero(column: number): void {
    const at = this.#lead(column);
    const fixed = this.#fixed[column];
    if (fixed !== undefined) {
      this.#at = at + fixed.copy(this.#out, at);
      return;
    }
    const kind = this.#kinds[column]!;
    if (kind === textKind || kind === exactKind) {
      this.#at = at;
      return;
    }
    if (kind === enumKind || kind === boolKind) {
      this.#word(column, at, 0);
      return;
    }
    this.#out[at] = 48;
    this.#at = at + 1;
  }

  #word(column: number, at: number, number: number): void {
    const word = this.#words[column]!.get(number);
    if (word === undefined) throw odd;
    const out = this.#out;
    for (let i = 0; i < word.length; i++) out[at + i] = word[i]!;
    this.#at = at + word.length;
  }

  /** A time in a coarser unit as nanoseconds: its digits, and zeros. */
  #units(column: number, at: number): void {
    const units = this.#wide.high * 0x1_0000_0000 + (this.#wide.low >>> 0);
    if (Math.abs(units) > this.#mostUnits[column]!) throw odd;
    let to = writeInt64(this.#outView, at, this.#wide.high, this.#wide.low);
    if (units !== 0) for (let zeros = this.#zeros[column]!; zeros > 0; zeros--) this.#out[to++] = 48;
    this.#at = to;
  }

  /** Writes the value at `at`, and returns where it ends on the wire. */
  #value(column: number, at: number, end: number): number {
    const to = this.#lead(column);
    const kind = this.#kinds[column]!;
    if (kind === textKind || kind === exactKind) {
      let length = this.#page[at]!;
      let start = at + 1;
      if (length >= 0x80) {
        start = this.#wide.read(this.#page, at);
        if (this.#wide.high !== 0) throw truncated();
        length = this.#wide.low >>> 0;
      }
      const stop = start + length;
      if (!(stop <= end)) throw truncated();
      const kept = kind === exactKind ? decimalEnd(this.#page, start, stop) : stop;
      if (kept < 0) throw odd;
      let written = writePlain(this.#outView, to, this.#pageView, start, kept);
      if (written < 0) written = writeEscaped(this.#out, to, this.#page, start, kept);
      if (written < 0) throw malformed(`${this.#columns[column]!.name} is not UTF-8`);
      this.#at = written;
      return stop;
    }
    if (kind === doubleKind || kind === exactDoubleKind) {
      if (at + 8 > end) throw truncated();
      const value = this.#pageView.getFloat64(at, true);
      const written = writeShortDouble(this.#outView, to, value);
      if (written >= 0) {
        this.#at = written;
        return at + 8;
      }
      const text = kind === doubleKind ? canonicalDouble(value) : decimalOf(value);
      for (let i = 0; i < text.length; i++) this.#out[to + i] = text.charCodeAt(i);
      this.#at = to + text.length;
      return at + 8;
    }
    const stop = this.#wide.read(this.#page, at);
    if (stop > end) throw truncated();
    const high = this.#wide.high;
    const low = this.#wide.low;
    switch (kind) {
      case tsEventKind:
        this.#tsHigh = high;
        this.#tsLow = low >>> 0;
        this.#at = writeInt64(this.#outView, to, high, low);
        break;
      case int64Kind:
        this.#at = writeInt64(this.#outView, to, high, low);
        break;
      case seqKind:
        this.#seqHigh = high >>> 0;
        this.#seqLow = low >>> 0;
        this.#at = writeUint64(this.#outView, to, high, low);
        break;
      case uint64Kind:
        this.#at = writeUint64(this.#outView, to, high, low);
        break;
      case unitKind:
        this.#units(column, to);
        break;
      case enumKind:
        // negative ones have all 64 bits on the wire; other high bits are not a valid enum number
        if (high !== low >> 31) throw odd;
        this.#word(column, to, low | 0);
        break;
      case boolKind:
        this.#word(column, to, high === 0 && low === 0 ? 0 : 1);
        break;
      default:
        if (high !== 0) throw malformed(`${this.#columns[column]!.name} does not fit 32 bits`);
        this.#at = writeUint53(this.#outView, to, low >>> 0);
    }
    return stop;
  }
}

function ownColumns(table: Table): readonly WireColumn[] {
  return rowMessage(table).fields.map(({ number }) => ({ number }));
}

function kindIn(column: Column, source: WireColumn, isStrict: boolean): number {
  if ("words" in source) return source.isBool ? boolKind : enumKind;
  if ("isDouble" in source) return exactDoubleKind;
  if (isStrict && column.kind === "exact") return exactKind;
  return "zeros" in source ? unitKind : kindOf(column);
}

function kindOf({ name, kind }: Column): number {
  switch (kind) {
    case "string":
    case "exact":
      return textKind;
    case "double":
      return doubleKind;
    case "uint32":
      return uint32Kind;
    case "uint64":
      return name === "seq" ? seqKind : uint64Kind;
    case "int64":
    case "timestamp":
      return name === "ts_event" ? tsEventKind : int64Kind;
  }
}

function wireTypeOf({ kind }: Column, source: WireColumn): number {
  if ("words" in source) return wireType.varint;
  if ("isDouble" in source) return wireType.fixed64;
  if (kind === "double") return wireType.fixed64;
  return kind === "string" || kind === "exact" ? wireType.length : wireType.varint;
}

/** Whether the canonical line quotes the value: all but small integers and doubles. */
function isQuoted({ kind }: Column): boolean {
  return kind !== "uint32" && kind !== "double";
}

/** A double as a decimal for an exact column: -0 becomes 0. */
function decimalOf(value: number): string {
  const text = String(value);
  // an exponent, or not a number
  if (/[eNI]/.test(text)) throw odd;
  return text;
}

/** Decimals with more digits are left to `oddRow`. */
const mostDigits = 100;

/**
 * Where a decimal ends without trailing zeros of its fraction, as in canonical lines; -1 for text that is neither empty
 * nor a decimal, or has an exponent, a leading zero or a signed zero.
 */
function decimalEnd(page: Uint8Array, start: number, end: number): number {
  if (start === end) return end;
  if (end - start > mostDigits) return -1;
  const isNegative = page[start] === 45;
  let at = isNegative ? start + 1 : start;
  const whole = at;
  while (at < end && isDigit(page[at]!)) at++;
  if (at === whole || (page[whole] === 48 && at > whole + 1)) return -1;
  let kept = at;
  if (at < end) {
    if (page[at++] !== 46 || at === end) return -1;
    for (; at < end; at++) {
      if (!isDigit(page[at]!)) return -1;
      if (page[at] !== 48) kept = at + 1;
    }
  }
  return isNegative && page[whole] === 48 && kept === whole + 1 ? -1 : kept;
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57;
}
