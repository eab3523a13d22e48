import type { RunvaultError } from "../../model/error.ts";
import { canonicalDouble, lineTooLong, longestLineBytes } from "../line.ts";
import { writeInt64, writeShortDouble, writeUint53, writeUint64 } from "./decimal-digits.ts";
import { type FieldPlan, jsonKind, type MessagePlan } from "./json-plan.ts";
import { escapedBytes, writeEscaped, writePlain } from "./json-text.ts";
import type { PageIndex } from "./page-index.ts";
import type { PageLines } from "./row-transcoder.ts";
import { keepUnknown, type UnknownPieces, unknownMembers } from "./unknown-members.ts";
import { WideVarint } from "./wide-varint.ts";
import { malformed, truncated, WireCursor, wireType } from "./wire-cursor.ts";

const chunkBytes = 512 * 1024;
/** For a single row; grows if needed. */
const lineBytes = 2 * 1024;
/** Most bytes of a value that is not a text. */
const valueBytes = 64;

const noBytes = Buffer.alloc(0);
const noView = new DataView(new ArrayBuffer(0));

const comma = 44;
const quote = 34;
const open = 123;
const close = 125;

/**
 * Converts a page's protobuf rows of any message into lines of JSON: proto field names, zero values present, fields
 * with presence only if set, 64-bit integers as strings, enums by name (unknown numbers as numbers), a Timestamp as
 * nanoseconds since 1970, a wrapper as its value. No objects are made. Unknown fields are put at the end of their
 * message, under `#` and their number, with their original bytes (tag included, in base64).
 *
 * Throws `malformed_row` for a page that does not fit the descriptor, `line_too_long` above 16 MiB.
 */
export class JsonTranscoder {
  readonly #plan: MessagePlan;
  #page: Uint8Array = new Uint8Array(0);
  #pageView: DataView = new DataView(new ArrayBuffer(0));
  #out: Buffer = Buffer.alloc(0);
  #outView: DataView = new DataView(new ArrayBuffer(0));
  #at = 0;
  readonly #wide = new WideVarint();
  #unknowns = 0;

  constructor(plan: MessagePlan) {
    this.#plan = plan;
  }

  /** See RowTranscoder. The page has no key here, because the meaning of its values is not known yet. */
  *transcode(index: PageIndex, most = Number.POSITIVE_INFINITY): Generator<number, PageLines> {
    const rows = Math.min(index.rows, most);
    const chunks: Uint8Array[] = [];
    for (let row = 0; row < rows; ) {
      const { chunk, next } = this.#fillChunk(index, row, rows);
      chunks.push(chunk);
      row = next;
      yield chunk.byteLength;
    }
    return { chunks, rows, first: undefined };
  }

  #fillChunk({ page, places }: PageIndex, from: number, rows: number) {
    this.#page = page;
    this.#pageView = new DataView(page.buffer, page.byteOffset, page.byteLength);
    this.#use(rows - from === 1 ? Buffer.allocUnsafe(lineBytes) : Buffer.allocUnsafeSlow(chunkBytes));
    this.#at = 0;
    let row = from;
    for (; row < rows && (row === from || this.#at < chunkBytes - chunkBytes / 8); row++) {
      const lineAt = this.#at;
      this.#unknowns = 0;
      this.#message(this.#plan, places[row * 2]!, places[row * 2 + 1]!);
      this.#room(1);
      this.#out[this.#at++] = 10;
      if (this.#at - lineAt - 1 > longestLineBytes) throw lineTooLong("row");
    }
    const chunk = this.#out.subarray(0, this.#at);
    // do not hold page and chunk longer than their reader does
    this.#page = this.#out = noBytes;
    this.#pageView = this.#outView = noView;
    return { chunk, next: row };
  }

  #use(out: Buffer): void {
    this.#out = out;
    this.#outView = new DataView(out.buffer, out.byteOffset, out.byteLength);
  }

  /** Makes room for so many more bytes. */
  #room(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#out.length) return;
    if (needed > chunkBytes + (longestLineBytes + valueBytes) * escapedBytes) throw lineTooLong("row");
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#out.length * 2));
    this.#out.copy(larger, 0, 0, this.#at);
    this.#use(larger);
  }

  #write(bytes: Uint8Array): void {
    this.#room(bytes.byteLength);
    const out = this.#out;
    let at = this.#at;
    // shorter than the overhead of calling `set`
    for (let i = 0; i < bytes.byteLength; i++) out[at++] = bytes[i]!;
    this.#at = at;
  }

  #message(plan: MessagePlan, start: number, end: number): void {
    const unknown = this.#find(plan, start, end);
    this.#room(1);
    this.#out[this.#at++] = open;
    let isFirst = true;
    const { fields, at } = plan;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i]!;
      const valueAt = at[i]!;
      if (valueAt === -1 && field.presence) continue;
      if (isFirst) isFirst = false;
      else {
        this.#room(1);
        this.#out[this.#at++] = comma;
      }
      this.#write(field.lead);
      if (valueAt === -1) this.#write(field.zero);
      else if (field.repeated) this.#list(field, start, end);
      else this.#value(field, valueAt, end);
    }
    if (unknown !== undefined) {
      this.#write(Buffer.from(`${isFirst ? "" : ","}${unknownMembers(unknown)}`, "latin1"));
    }
    this.#room(1);
    this.#out[this.#at++] = close;
  }

  /** Finds where each field's value is; returns unknown fields. */
  #find(plan: MessagePlan, start: number, end: number): UnknownPieces | undefined {
    const { fields, indexOf } = plan;
    const at = plan.at.fill(-1);
    const oneofs = plan.oneofs.fill(0);
    const cursor = new WireCursor(this.#page, start, end);
    let unknown: UnknownPieces | undefined;
    while (cursor.next()) {
      const index = indexOf.get(cursor.number);
      if (index === undefined) {
        unknown ??= new Map();
        keepUnknown(unknown, cursor, this.#page, ++this.#unknowns);
        continue;
      }
      const field = fields[index]!;
      if (field.repeated) {
        if (cursor.type !== field.wireType && cursor.type !== wireType.length)
          throw wrongType(field, cursor.type);
      } else {
        if (cursor.type !== field.wireType) throw wrongType(field, cursor.type);
        if (at[index] !== -1) throw malformed(`${field.name} is set twice in a row`);
        if (field.oneof !== undefined && oneofs[field.oneof]!++ > 0)
          throw malformed(`${field.name} is set beside another of its oneof`);
      }
      at[index] = cursor.pos;
      cursor.skip();
    }
    return unknown;
  }

  /** The values of a repeated field, packed or not: they may be anywhere in the message. */
  #list(field: FieldPlan, start: number, end: number): void {
    const cursor = new WireCursor(this.#page, start, end);
    this.#room(1);
    this.#out[this.#at++] = 91;
    let isFirst = true;
    const separate = () => {
      this.#room(1);
      if (!isFirst) this.#out[this.#at++] = comma;
      isFirst = false;
    };
    while (cursor.next()) {
      if (cursor.number === field.number) {
        const isPacked = cursor.type === wireType.length && field.wireType !== wireType.length;
        if (isPacked) {
          const stop = cursor.enter();
          for (let pos = cursor.pos; pos < stop; ) {
            separate();
            pos = this.#value(field, pos, stop);
          }
          cursor.pos = stop;
          continue;
        }
        separate();
        this.#value(field, cursor.pos, end);
      }
      cursor.skip();
    }
    this.#room(1);
    this.#out[this.#at++] = 93;
  }

  /** Writes the value at `at`, and returns where it ends on the wire. */
  #value(field: FieldPlan, at: number, end: number): number {
    if (field.wireType === wireType.length) return this.#lengthValue(field, at, end);
    this.#room(valueBytes);
    if (field.wireType !== wireType.varint) return this.#fixedValue(field, at, end);
    const stop = this.#wide.read(this.#page, at);
    if (stop > end) throw truncated();
    const high = this.#wide.high;
    const low = this.#wide.low;
    switch (field.kind) {
      case jsonKind.uint64:
        this.#quoted(high, low, false);
        break;
      case jsonKind.int64:
        this.#quoted(high, low, true);
        break;
      case jsonKind.sint64: {
        const sign = -(low & 1);
        this.#quoted((high >>> 1) ^ sign, (((low >>> 1) | (high << 31)) ^ sign) >>> 0, true);
        break;
      }
      case jsonKind.bool:
        this.#write(high === 0 && low === 0 ? falseText : trueText);
        break;
      case jsonKind.uint32:
        if (high !== 0) throw malformed(`${field.name} does not fit 32 bits`);
        this.#at = writeUint53(this.#outView, this.#at, low >>> 0);
        break;
      case jsonKind.sint32:
        if (high !== 0) throw malformed(`${field.name} does not fit 32 bits`);
        this.#signed((low >>> 1) ^ -(low & 1));
        break;
      default: {
        // int32 and enums: negative ones have all 64 bits on the wire
        if (high !== low >> 31) throw malformed(`${field.name} does not fit 32 bits`);
        const name = field.names?.get(low | 0);
        if (name === undefined) this.#signed(low | 0);
        else this.#write(name);
      }
    }
    return stop;
  }

  #fixedValue(field: FieldPlan, at: number, end: number): number {
    const view = this.#pageView;
    const bytes = field.wireType === wireType.fixed64 ? 8 : 4;
    if (at + bytes > end) throw truncated();
    switch (field.kind) {
      case jsonKind.double:
        this.#double(view.getFloat64(at, true));
        break;
      case jsonKind.float:
        this.#double(view.getFloat32(at, true));
        break;
      case jsonKind.fixed32:
        this.#at = writeUint53(this.#outView, this.#at, view.getUint32(at, true));
        break;
      case jsonKind.sfixed32:
        this.#signed(view.getInt32(at, true));
        break;
      default:
        this.#quoted(view.getInt32(at + 4, true), view.getUint32(at, true), field.kind === jsonKind.sfixed64);
    }
    return at + bytes;
  }

  #lengthValue(field: FieldPlan, at: number, end: number): number {
    let start = this.#wide.read(this.#page, at);
    if (this.#wide.high !== 0) throw truncated();
    const length = this.#wide.low >>> 0;
    const stop = start + length;
    if (!(stop <= end)) throw truncated();
    switch (field.kind) {
      case jsonKind.text: {
        this.#room(length * escapedBytes + valueBytes);
        this.#out[this.#at++] = quote;
        let to = writePlain(this.#outView, this.#at, this.#pageView, start, stop);
        if (to < 0) to = writeEscaped(this.#out, this.#at, this.#page, start, stop);
        if (to < 0) throw malformed(`${field.name} is not UTF-8`);
        this.#out[to] = quote;
        this.#at = to + 1;
        break;
      }
      case jsonKind.bytes:
        this.#write(
          Buffer.from(`"${Buffer.from(this.#page.subarray(start, stop)).toString("base64")}"`, "latin1"),
        );
        break;
      case jsonKind.timestamp:
        this.#timestamp(field, start, stop);
        break;
      case jsonKind.wrapper: {
        const inner = field.message!;
        if (this.#find(inner, start, stop) !== undefined) throw oddInside(field);
        const [value] = inner.fields;
        start = inner.at[0]!;
        if (start === -1) this.#write(value!.zero);
        else this.#value(value!, start, stop);
        break;
      }
      default:
        this.#message(field.message!, start, stop);
    }
    return stop;
  }

  /** Seconds and nanoseconds side by side: from 1970 on, the digits of one follow those of the other. */
  #timestamp(field: FieldPlan, start: number, stop: number): void {
    this.#room(valueBytes);
    let high = 0;
    let low = 0;
    let nanos = 0;
    const cursor = new WireCursor(this.#page, start, stop);
    while (cursor.next()) {
      if (cursor.type === wireType.varint && (cursor.number === 1 || cursor.number === 2)) {
        this.#wide.read(this.#page, cursor.pos);
        if (cursor.number === 1) {
          high = this.#wide.high;
          low = this.#wide.low;
        } else {
          nanos = this.#wide.high === 0 ? this.#wide.low >>> 0 : -1;
        }
      } else throw oddInside(field);
      cursor.skip();
    }
    if (nanos < 0 || nanos > 999_999_999)
      throw malformed(`the nanos of ${field.name} are not below a second`);
    if (high < 0 || high > 0x1f_ffff || (high === 0 && low === 0)) {
      const seconds = (BigInt(high) << 32n) | BigInt(low >>> 0);
      this.#latin(`"${seconds * 1_000_000_000n + BigInt(nanos)}"`);
      return;
    }
    this.#out[this.#at++] = quote;
    this.#at = writeUint64(this.#outView, this.#at, high, low);
    // ten digits, the first of which is overwritten
    const digits = this.#at - 1;
    const last = this.#out[digits]!;
    this.#at = writeUint53(this.#outView, digits, 1_000_000_000 + nanos);
    this.#out[digits] = last;
    this.#out[this.#at++] = quote;
  }

  #quoted(high: number, low: number, isSigned: boolean): void {
    this.#out[this.#at++] = quote;
    this.#at = isSigned
      ? writeInt64(this.#outView, this.#at, high, low)
      : writeUint64(this.#outView, this.#at, high, low);
    this.#out[this.#at++] = quote;
  }

  #signed(value: number): void {
    if (value < 0) this.#out[this.#at++] = 45;
    this.#at = writeUint53(this.#outView, this.#at, Math.abs(value));
  }

  #double(value: number): void {
    const end = writeShortDouble(this.#outView, this.#at, value);
    if (end < 0) this.#latin(canonicalDouble(value));
    else this.#at = end;
  }

  #latin(text: string): void {
    const out = this.#out;
    let at = this.#at;
    for (let i = 0; i < text.length; i++) out[at++] = text.charCodeAt(i);
    this.#at = at;
  }
}

const trueText = Buffer.from("true");
const falseText = Buffer.from("false");

function wrongType({ name }: FieldPlan, type: number): RunvaultError {
  return malformed(`${name} has the wrong wire type ${type}`);
}

/** The error for a well-known message with unknown fields. */
function oddInside({ name }: FieldPlan): RunvaultError {
  return malformed(`${name} has fields that its message does not define`);
}
