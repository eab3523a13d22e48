import { isUtf8 } from "node:buffer";
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  toBinary,
} from "@bufbuild/protobuf";
import { PreviewRowSchema } from "../../gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { Column, Table } from "../../model/profile/table.ts";
import { extraKey, splitExtra } from "../extra-member.ts";
import { rowMessage } from "./row-message.ts";
import { WireCursor } from "./wire-cursor.ts";

/** Whether a response has rows as their own message or wrapped in PreviewRow. */
export type RowForm = "plain" | "preview";

const varint = 0;
const fixed64 = 1;
const lengthDelimited = 2;
// every response with rows has them in field 1
const rowsTag = (1 << 3) | lengthDelimited;

const quote = 34;
const comma = 44;
const minus = 45;
const backslash = 92;
const braceOpen = 123;
const braceClose = 125;
const lineEnd = 10;

/** How a column is read and written; numbers, so that the loop compares no strings. */
const textKind = 0;
const signedKind = 1;
const unsignedKind = 2;
const smallKind = 3;
const doubleKind = 4;

/**
 * Writes rows of one table in protobuf encoding for a response, directly from canonical lines: one loop over bytes, no
 * objects. Other lines go through JSON.parse and the message. A line that does not fit the message is an error that
 * names the row; nothing is left out except the member `extra` at a line's end, for which no message has a field.
 */
export class RowWire {
  /** Rows written. */
  rows = 0;
  /** `ts_event` of the last row written, as the halves of its 64 bits. */
  eventHigh = 0;
  eventLow = 0;
  readonly #table: Table;
  /** The keys of all columns, eight bytes per number; a key's last number overlaps the one before. */
  readonly #keyWords: Float64Array;
  readonly #keySizes: Uint8Array;
  readonly #kinds: Uint8Array;
  /** Tags with their lengths in bytes; no row message has more than 2047 fields. */
  readonly #tags: Uint16Array;
  readonly #eventColumn: number;
  /** Tag of the row in PreviewRow; 0 for plain rows. */
  readonly #previewTag: number;
  #bytes: Buffer;
  #view: DataView;
  /** The last text read, which is passed again for each of its lines. */
  #text: Uint8Array = new Uint8Array(0);
  #textView = new DataView(this.#text.buffer);
  #length = 0;
  #lastStart = 0;

  constructor(table: Table, form: RowForm, expectedBytes: number) {
    const { columns } = table;
    const message = rowMessage(table);
    this.#table = table;
    const keys = columns.map(keyBytes);
    this.#keyWords = Float64Array.from(keys.flatMap(wordsOf));
    this.#keySizes = Uint8Array.from(keys.map((key) => key.length));
    this.#kinds = Uint8Array.from(columns.map(kindOf));
    this.#tags = Uint16Array.from(message.fields.map(tagOf));
    this.#eventColumn = columns.findIndex(({ name }) => name === "ts_event");
    this.#previewTag = form === "plain" ? 0 : previewTag(message);
    this.#bytes = Buffer.allocUnsafeSlow(expectedBytes);
    this.#view = viewOf(this.#bytes);
  }

  /** Bytes written, tags and lengths of the rows included. */
  get size(): number {
    return this.#length;
  }

  /** The rows so far, each with the tag of field 1 before it. A view: later writes may overwrite it. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The bytes of the row's message written last. */
  lastMessage(): Uint8Array {
    let at = this.#lastStart;
    for (let header = this.#previewTag === 0 ? 1 : 2; header > 0; header -= 1) {
      at += 1;
      while (this.#bytes[at]! >= 128) at += 1;
      at += 1;
    }
    return this.#bytes.subarray(at, this.#length);
  }

  /** Removes the row written last. */
  dropLast(): void {
    this.#length = this.#lastStart;
    this.rows -= 1;
  }

  /** Forgets every row. */
  clear(): void {
    this.#length = 0;
    this.rows = 0;
  }

  /** Writes a row from its message's bytes, without reading its `ts_event`. */
  appendMessage(message: Uint8Array): void {
    this.#reserve(message.length);
    this.#bytes.set(message, this.#length + this.#headBytes);
    this.#close(this.#length + this.#headBytes + message.length);
  }

  /**
   * Writes the row whose canonical line begins at `start`, and returns the position after its line end; -1, with
   * nothing written, if there is no whole canonical line.
   */
  appendCanonical(text: Uint8Array, start: number): number {
    // a row's size is known only at its end; writes past a typed array do nothing, and are detected below
    if (text !== this.#text) {
      this.#text = text;
      this.#textView = viewOf(text);
    }
    const bytes = this.#bytes;
    const view = this.#view;
    const textView = this.#textView;
    const keyWords = this.#keyWords;
    const keySizes = this.#keySizes;
    const kinds = this.#kinds;
    const tags = this.#tags;
    const eventColumn = this.#eventColumn;
    const halves = this.#halves;
    const end = text.length;
    const capacity = bytes.length;
    let word = 0;
    let from = start;
    let to = this.#length + this.#headBytes;
    for (let column = 0; column < kinds.length; column += 1) {
      const keyEnd = from + keySizes[column]!;
      if (keyEnd > end) return -1;
      // as doubles: keys are ASCII, so none is NaN or zero, and equality means equal bits
      for (; from + 8 < keyEnd; from += 8, word += 1) {
        if (textView.getFloat64(from, true) !== keyWords[word]) return -1;
      }
      if (textView.getFloat64(keyEnd - 8, true) !== keyWords[word++]) return -1;
      from = keyEnd;
      const tag = tags[column]!;
      const kind = kinds[column]!;
      let put = to;
      if (tag < 128) bytes[put++] = tag;
      else {
        bytes[put++] = (tag & 127) | 128;
        bytes[put++] = tag >>> 7;
      }
      if (kind === textKind) {
        const lengthAt = put;
        put += 1;
        let isAscii = true;
        for (;;) {
          if (from + 4 <= end && put + 4 <= capacity) {
            const four = textView.getInt32(from, true);
            const quotes = four ^ 0x22222222;
            const escapes = four ^ 0x5c5c5c5c;
            // a byte's highest bit is set where it, or a lower one, is not plain text
            const odd =
              four |
              (four - 0x20202020) |
              ((quotes - 0x01010101) & ~quotes) |
              ((escapes - 0x01010101) & ~escapes);
            if ((odd & 0x80808080) === 0) {
              view.setInt32(put, four, true);
              put += 4;
              from += 4;
              continue;
            }
          }
          if (from >= end) return -1;
          const byte = text[from]!;
          if (byte === quote) break;
          if (byte >= 128) isAscii = false;
          else if (byte < 32) return -1;
          else if (byte === backslash) {
            const width = this.#unescape(text, from, put);
            if (width === 0) return -1;
            put = this.#unescapedTo;
            from += width;
            continue;
          }
          bytes[put++] = byte;
          from += 1;
        }
        from += 1;
        const size = put - lengthAt - 1;
        if (size === 0) continue;
        if (put > capacity) return this.#appendWithRoom(text, start);
        if (!isAscii && !isUtf8(bytes.subarray(lengthAt + 1, put))) return -1;
        if (size < 128) bytes[lengthAt] = size;
        else {
          const width = varintBytes(size);
          if (put + width > capacity) return this.#appendWithRoom(text, start);
          bytes.copyWithin(lengthAt + width, lengthAt + 1, put);
          putVarint(bytes, lengthAt, size);
          put += width - 1;
        }
        to = put;
        continue;
      }
      if (kind === doubleKind) {
        const close = this.#readDouble(text, from);
        if (close === -1) return -1;
        from = close;
        if (Object.is(this.#double, 0)) continue;
        if (put + 8 > capacity) return this.#appendWithRoom(text, start);
        view.setFloat64(put, this.#double, true);
        to = put + 8;
        continue;
      }
      const close = this.#readInteger(text, from, kind);
      if (close === -1) return -1;
      from = close;
      const high = halves[0]!;
      const low = halves[1]!;
      if (column === eventColumn) {
        this.eventHigh = high;
        this.eventLow = low;
      }
      if (high !== 0 || low !== 0) to = putVarint64(bytes, put, high, low);
    }
    if (text[from] === comma) from = behindExtra(text, from);
    if (text[from] !== braceClose || text[from + 1] !== lineEnd) return -1;
    if (to > capacity) return this.#appendWithRoom(text, start);
    this.#close(to);
    return from + 2;
  }

  /**
   * Writes the row of any form of line, without its line end. `place` names the row in errors. Throws
   * `history_query_failed` if the line does not fit its table's message.
   */
  appendLine(line: Uint8Array, place: string): void {
    const { columns } = this.#table;
    const message = rowMessage(this.#table);
    let wire: Uint8Array;
    try {
      const { row, drift } = parsedRow(this.#table, line);
      const known = toBinary(message, fromJson(message, row));
      wire = drift.length === 0 ? known : Buffer.concat([known, ...drift]);
      const event = BigInt.asUintN(64, BigInt(String(row.ts_event)));
      this.eventHigh = Number(event >> 32n);
      this.eventLow = Number(event & 0xffff_ffffn);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const shown = Buffer.from(line.buffer, line.byteOffset, Math.min(line.byteLength, 200));
      throw new RunvaultError(
        "history_query_failed",
        `${place} does not fit ${message.typeName} with its ${columns.length} fields: ${why}: ${shown.toString("utf8")}`,
        { cause: error },
      );
    }
    this.appendMessage(wire);
  }

  /** Bytes reserved before a row for its tags and lengths, right for rows of 128 to 16,383 bytes. */
  get #headBytes(): number {
    return this.#previewTag === 0 ? 3 : 6;
  }

  /** Writes tags and lengths before the message that ends at `end`, and counts it. */
  #close(end: number): void {
    const bytes = this.#bytes;
    const start = this.#length;
    const inner = this.#previewTag;
    const headBytes = this.#headBytes;
    const size = end - start - headBytes;
    const sizeBytes = varintBytes(size);
    const wrapped = inner === 0 ? size : 1 + sizeBytes + size;
    const head = inner === 0 ? 1 + sizeBytes : 2 + varintBytes(wrapped) + sizeBytes;
    if (head > headBytes && start + head + size > bytes.length) this.#reserve(size);
    if (head !== headBytes) this.#bytes.copyWithin(start + head, start + headBytes, end);
    let at = start;
    this.#bytes[at++] = rowsTag;
    at = putVarint(this.#bytes, at, wrapped);
    if (inner !== 0) {
      this.#bytes[at++] = inner;
      putVarint(this.#bytes, at, size);
    }
    this.#lastStart = start;
    this.#length = start + head + size;
    this.rows += 1;
  }

  /** Repeats it with enough room for the line. */
  #appendWithRoom(text: Uint8Array, start: number): number {
    const end = text.indexOf(lineEnd, start);
    if (end === -1) return -1;
    this.#reserve(2 * (end - start));
    return this.appendCanonical(text, start);
  }

  /** Room for a row of so many bytes, with its tags and lengths. */
  #reserve(rowBytes: number): void {
    const needed = this.#length + rowBytes + 64;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    // beyond `length` is a row whose head is not written yet
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }

  /** The last values read: the halves of a 64-bit integer, upper first; a double. */
  readonly #halves = new Uint32Array(2);
  #double = 0;
  #unescapedTo = 0;

  /**
   * Reads digits up to their closing quote or, for a small number, the next delimiter; -1 if it is not such a number.
   */
  #readInteger(text: Uint8Array, start: number, kind: number): number {
    let from = start;
    const isNegative = text[from] === minus;
    if (isNegative) {
      if (kind !== signedKind) return -1;
      from += 1;
    }
    const firstDigit = from;
    while (text[from]! >= 48 && text[from]! <= 57) from += 1;
    const digits = from - firstDigit;
    if (digits === 0 || digits > 20 || (digits > 1 && text[firstDigit] === 48)) return -1;
    // the last nine digits, and up to eleven before them
    const tailStart = digits > 9 ? from - 9 : firstDigit;
    let head = 0;
    for (let at = firstDigit; at < tailStart; at += 1) head = head * 10 + text[at]! - 48;
    let tail = 0;
    for (let at = tailStart; at < from; at += 1) tail = tail * 10 + text[at]! - 48;
    // (head * 10^9 + tail) in two halves, with no step beyond 2^53
    const upper = Math.floor(head / 65_536) * 1_000_000_000;
    const lower = (head % 65_536) * 1_000_000_000 + tail;
    const sum = (upper % 65_536) * 65_536 + lower;
    let low = sum % 4_294_967_296;
    let high = Math.floor(upper / 65_536) + Math.floor(sum / 4_294_967_296);
    if (high > 0xffff_ffff) return -1;
    if (kind === smallKind) {
      if (high !== 0) return -1;
      if (text[from] !== comma && text[from] !== braceClose) return -1;
    } else {
      if (text[from] !== quote) return -1;
      from += 1;
    }
    if (kind === signedKind) {
      if (isNegative) {
        if (high > 0x8000_0000 || (high === 0x8000_0000 && low > 0) || (high === 0 && low === 0)) return -1;
        low = -low >>> 0;
        high = low === 0 ? -high >>> 0 : ~high >>> 0;
      } else if (high >= 0x8000_0000) return -1;
    }
    this.#halves[0] = high;
    this.#halves[1] = low;
    return from;
  }

  /** Reads a number or a quoted NaN or infinity up to the next delimiter; -1 if it is neither. */
  #readDouble(text: Uint8Array, start: number): number {
    let end = start;
    while (end < text.length && end - start < 32 && text[end] !== comma && text[end] !== braceClose) end += 1;
    const literal = Buffer.from(text.buffer, text.byteOffset + start, end - start).toString("latin1");
    const special = specialDoubles[literal];
    if (special !== undefined) this.#double = special;
    else {
      if (!numberPattern.test(literal)) return -1;
      this.#double = Number(literal);
      if (!Number.isFinite(this.#double)) return -1;
    }
    return end;
  }

  /** Writes the character of an escape and returns the escape's length; 0 if it is invalid or half a character. */
  #unescape(text: Uint8Array, from: number, to: number): number {
    const bytes = this.#bytes;
    const letter = text[from + 1]!;
    let code = simpleEscapes[letter] ?? -1;
    let width = 2;
    if (letter === 117) {
      code = hex4(text, from + 2);
      width = 6;
      if (code >= 0xd800 && code < 0xe000) {
        const isPair = code < 0xdc00 && text[from + 6] === backslash && text[from + 7] === 117;
        const second = isPair ? hex4(text, from + 8) : -1;
        if (second < 0xdc00 || second > 0xdfff) return 0;
        code = 0x1_0000 + ((code - 0xd800) << 10) + (second - 0xdc00);
        width = 12;
      }
    }
    if (code < 0) return 0;
    let put = to;
    if (code < 0x80) bytes[put++] = code;
    else {
      if (code < 0x800) bytes[put++] = 0xc0 | (code >>> 6);
      else {
        if (code < 0x1_0000) bytes[put++] = 0xe0 | (code >>> 12);
        else {
          bytes[put++] = 0xf0 | (code >>> 18);
          bytes[put++] = 0x80 | ((code >>> 12) & 63);
        }
        bytes[put++] = 0x80 | ((code >>> 6) & 63);
      }
      bytes[put++] = 0x80 | (code & 63);
    }
    this.#unescapedTo = put;
    return width;
  }
}

const extraLead = Buffer.from(`${extraKey}{`);

/**
 * The position after the member `extra` that begins at `start`; -1 if there is none. Only matches braces: its contents
 * are not part of the row.
 */
function behindExtra(text: Uint8Array, start: number): number {
  let at = start;
  for (const byte of extraLead) if (text[at++] !== byte) return -1;
  let isText = false;
  for (let depth = 1; depth > 0; at += 1) {
    let byte = text[at];
    if (byte === quote) isText = !isText;
    else if (isText) byte = byte === backslash ? text[++at] : byte;
    else if (byte === braceOpen) depth += 1;
    else if (byte === braceClose) depth -= 1;
    if (byte === undefined || byte === lineEnd) return -1;
  }
  return at;
}

const simpleEscapes: Readonly<Record<number, number>> = {
  34: 34,
  47: 47,
  92: 92,
  98: 8,
  102: 12,
  110: 10,
  114: 13,
  116: 9,
};
const specialDoubles: Readonly<Record<string, number>> = {
  '"NaN"': Number.NaN,
  '"Infinity"': Number.POSITIVE_INFINITY,
  '"-Infinity"': Number.NEGATIVE_INFINITY,
};
const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Writes a number below 2^32 as a varint and returns where it ends. */
function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let left = value;
  while (left > 127) {
    bytes[at++] = (left & 127) | 128;
    left >>>= 7;
  }
  bytes[at++] = left;
  return at;
}

/** Writes a 64-bit number as a varint and returns where it ends. */
function putVarint64(bytes: Uint8Array, start: number, upper: number, lower: number): number {
  let high = upper;
  let low = lower;
  let at = start;
  while (high !== 0) {
    bytes[at++] = (low & 127) | 128;
    low = ((low >>> 7) | (high << 25)) >>> 0;
    high >>>= 7;
  }
  return putVarint(bytes, at, low);
}

function varintBytes(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : value < 268_435_456 ? 4 : 5;
}

/** The value of four hexadecimal digits; -1 if they are not. */
function hex4(text: Uint8Array, start: number): number {
  let value = 0;
  for (let at = start; at < start + 4; at += 1) {
    const byte = text[at]!;
    const digit =
      byte >= 48 && byte <= 57
        ? byte - 48
        : byte >= 97 && byte <= 102
          ? byte - 87
          : byte >= 65 && byte <= 70
            ? byte - 55
            : -1;
    if (digit === -1) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/** The text before a column's value in a canonical line, including the quote if there always is one. */
function keyBytes({ name, kind }: Column, index: number): Uint8Array {
  const isQuoted = kind !== "uint32" && kind !== "double";
  return Buffer.from(`${index === 0 ? "{" : ","}"${name}":${isQuoted ? '"' : ""}`);
}

/** Eight bytes per number, as a DataView reads them; the last eight again, overlapping. */
function wordsOf(key: Uint8Array): number[] {
  if (key.length < 8) throw new Error(`a column's name is too short to compare: ${Buffer.from(key)}`);
  const view = viewOf(key);
  const words: number[] = [];
  for (let at = 0; at + 8 < key.length; at += 8) words.push(view.getFloat64(at, true));
  return [...words, view.getFloat64(key.length - 8, true)];
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function kindOf({ kind }: Column): number {
  switch (kind) {
    case "uint64":
      return unsignedKind;
    case "int64":
    case "timestamp":
      return signedKind;
    case "uint32":
      return smallKind;
    case "double":
      return doubleKind;
    case "exact":
    case "string":
      return textKind;
  }
}

function tagOf({ number, name, parent }: DescField, index: number): number {
  const column = parent.fields[index];
  const wireType =
    column?.fieldKind !== "scalar" ? lengthDelimited : (wireTypes[column.scalar] ?? lengthDelimited);
  const tag = (number << 3) | wireType;
  if (tag > 0x3fff) throw new Error(`${parent.typeName}.${name} has a number beyond 2047`);
  return tag;
}

// DOUBLE, INT64, UINT64, UINT32 of ScalarType; strings are the rest
const wireTypes: Readonly<Record<number, number>> = { 1: fixed64, 3: varint, 4: varint, 13: varint };

function previewTag(message: DescMessage): number {
  const field = PreviewRowSchema.fields.find((candidate) => candidate.message === message);
  if (field === undefined) throw new Error(`PreviewRow has no ${message.typeName}`);
  return (field.number << 3) | lengthDelimited;
}

const fatalUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

interface ParsedRow {
  /** The JSON object of the row's message. */
  readonly row: JsonObject;
  /** Fields that the message does not have, in wire form. */
  readonly drift: readonly Uint8Array[];
}

/**
 * A line as the JSON object of its message. Stricter than protobuf JSON where that could confuse values: every field
 * exactly once, no null, no 64-bit integer that JSON.parse may have rounded, no half characters. Leaves out an object
 * `extra` at its end. `#` and a number is the key of a field that a gateway sent over RPC and the contract does not
 * know: its original bytes are restored.
 */
function parsedRow(table: Table, line: Uint8Array): ParsedRow {
  const text = withoutExtra(fatalUtf8.decode(line));
  const row = parseJson(text);
  if (typeof row !== "object" || row === null || Array.isArray(row))
    throw new Error("it is not a JSON object");
  const values = row as JsonObject;
  for (const { name, kind } of table.columns) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined) throw new Error(`${name} is missing`);
    if (value === null) throw new Error(`${name} is null`);
    const isWide = kind === "uint64" || kind === "int64" || kind === "timestamp";
    if (isWide && typeof value !== "string") throw new Error(`${name} is a 64-bit integer but not a string`);
    if (typeof value === "string" && !value.isWellFormed())
      throw new Error(`${name} contains half of a surrogate pair`);
  }
  // a quote inside a string is escaped, so a quoted text between a brace or comma and a colon is a key
  const keys = text.match(/[{,]\s*"(?:[^"\\]|\\.)*"\s*:/g)?.length ?? 0;
  const unknown = Object.keys(values).filter((key) => key.startsWith("#"));
  if (keys !== table.columns.length + unknown.length) throw new Error(`it has ${keys} keys`);
  if (unknown.length === 0) return { row: values, drift: [] };
  const drift = unknown.map((key) => driftBytes(table, key, values[key]));
  return { row: Object.fromEntries(table.columns.map(({ name }) => [name, values[name]!])), drift };
}

/** A line without the member `extra` at its end; unchanged if that is not an object. */
function withoutExtra(line: string): string {
  const split = splitExtra(line.trimEnd());
  if (split === undefined) return line;
  try {
    parseJson(split.extra);
    return split.head;
  } catch {
    return line;
  }
}

/**
 * The bytes of an unknown field under its key: one or several fields of that number, tags included, and nothing else.
 */
function driftBytes(table: Table, key: string, value: JsonValue | undefined): Uint8Array {
  const number = Number(/^#([1-9]\d{0,8})$/.exec(key)?.[1]);
  if (Number.isNaN(number)) throw new Error(`${JSON.stringify(key)} is not a field number`);
  if (rowMessage(table).fields.some((field) => field.number === number)) {
    throw new Error(`${key} is the number of a field that has a name`);
  }
  const bytes = Buffer.from(typeof value === "string" ? value : "", "base64");
  if (bytes.length === 0 || bytes.toString("base64") !== value) throw new Error(`${key} is not base64`);
  const cursor = new WireCursor(bytes, 0, bytes.length);
  while (cursor.next()) {
    if (cursor.number !== number) throw new Error(`${key} holds field ${cursor.number}`);
    cursor.skip();
  }
  return bytes;
}
