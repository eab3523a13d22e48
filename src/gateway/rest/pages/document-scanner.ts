import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import { deepestJson } from "../../../model/outside-json.ts";
import { lineTooLong, longestLineBytes } from "../../../row/line.ts";

/** What to find in a JSON document. */
export interface Sought {
  /** Names that lead to the array whose elements are returned; undefined for none. */
  readonly array: readonly string[] | undefined;
  /** Names that lead to each value wanted besides it. */
  readonly values: readonly (readonly string[])[];
  /** Longest text of such a value. Default: 64 KiB. */
  readonly valueBytes?: number | undefined;
}

const usualValueBytes = 64 * 1024;
/** A longer key is not one of those wanted, whatever its escapes. */
const longestKeyBytes = 8 * 1024;
/** Numbers, true, false and null are no longer. */
const longestScalarBytes = 4096;
const scalarForm = /^(?:true|false|null|-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Infinity)|NaN)$/;

/** What may come next. */
const state = {
  value: 0,
  firstElement: 1,
  firstKey: 2,
  key: 3,
  colon: 4,
  after: 5,
  done: 6,
  text: 7,
  keyText: 8,
  scalar: 9,
  // inside the array
  firstRow: 10,
  row: 11,
  afterRow: 12,
  rowInside: 13,
  rowText: 14,
  rowScalar: 15,
} as const;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const lineFeed = 0x0a;

/** Significant bytes outside of strings, and inside. */
const stopsOutside = stops('"{}[]\n\r');
const stopsInside = stops('"\\\n\r');

function stops(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}

interface Container {
  readonly isObject: boolean;
  /** Bits of the wanted paths that lead through this container. */
  readonly alive: number;
  /** Bits of those that one of its members has matched. */
  taken: number;
}

/**
 * Scans a JSON document as it comes. Elements of one array are returned one per line, with their original bytes except
 * line breaks between tokens; wanted values before or after it are kept. Memory is that of a chunk. Elements are not
 * checked beyond where they end: the reader of the lines does that.
 *
 * Throws `not_a_gateway` for anything but JSON outside of the elements, nesting deeper than 64 levels, a duplicate
 * member on a wanted path, or a missing array, and `line_too_long` for an element over 16 MiB.
 */
export class DocumentScanner {
  /** Elements completed so far. */
  rows = 0;
  readonly #place: ErrorPlace;
  readonly #paths: readonly (readonly string[])[];
  /** The array's bit; 0 for none. */
  readonly #arrayBit: number;
  readonly #mostValueBytes: number;
  readonly #found = new Map<number, string>();
  #state: number = state.value;
  #escaped = false;
  readonly #stack: Container[] = [];
  /** What the next member completes, and where it leads. */
  #complete: number;
  #leads: number;
  #sawArray = false;
  #key: number[] | undefined = [];
  #scalar = "";
  /** The kept value, a byte per character, its bits, and its depth. */
  #capture: string | undefined;
  #captured = 0;
  #captureDepth = 0;
  #rowDepth = 0;
  #rowBytes = 0;
  #isFirst = true;

  constructor({ array, values, valueBytes = usualValueBytes }: Sought, place: ErrorPlace) {
    this.#place = place;
    this.#paths = array === undefined ? values : [...values, array];
    this.#arrayBit = array === undefined ? 0 : 1 << values.length;
    this.#mostValueBytes = valueBytes;
    const all = (1 << this.#paths.length) - 1;
    this.#complete = this.#paths.reduce((bits, path, i) => (path.length === 0 ? bits | (1 << i) : bits), 0);
    this.#leads = all & ~this.#complete;
  }

  /** The JSON text of the wanted value with this number; undefined if it has not come. */
  value(index: number): string | undefined {
    return this.#found.get(index);
  }

  /** Takes the next bytes of the document; returns those of elements. */
  push(chunk: Uint8Array): Uint8Array {
    let at = 0;
    if (this.#isFirst && chunk.length > 0) {
      this.#isFirst = false;
      // some servers begin with a byte order mark
      if (chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf) at = 3;
    }
    // a line end replaces a comma or bracket, but one may be left over from the previous chunk
    const out = Buffer.allocUnsafe(chunk.length + 2);
    let length = 0;
    while (at < chunk.length) {
      if (this.#state < state.firstRow) {
        at = this.#skeleton(chunk, at);
        continue;
      }
      const begin = at;
      switch (this.#state) {
        case state.rowInside:
          at = this.#inside(chunk, at);
          break;
        case state.rowText:
          at = this.#rowString(chunk, at);
          break;
        case state.rowScalar:
          while (at < chunk.length && !isDelimiter(chunk[at]!)) at++;
          if (at < chunk.length) this.#endRow();
          break;
        default:
          at = this.#betweenRows(chunk, at);
          continue;
      }
      this.#rowBytes += at - begin;
      if (this.#rowBytes > longestLineBytes) throw lineTooLong("row", this.#place);
      out.set(chunk.subarray(begin, at), length);
      length += at - begin;
      const now = this.#now;
      if (now === state.afterRow) {
        out[length] = lineFeed;
        length++;
        this.#rowBytes = 0;
      } else if (now === state.rowInside && isLineBreak(chunk[at])) {
        at++;
      }
    }
    return out.subarray(0, length);
  }

  /** Throws `stream_cut` if the document is incomplete. */
  end(): void {
    if (this.#state === state.scalar && this.#stack.length === 0) this.#endScalar();
    if (this.#state !== state.done) {
      throw new RunvaultError("stream_cut", "the answer ended in the middle of its JSON document", {
        place: this.#place,
      });
    }
    if (this.#arrayBit === 0 || this.#sawArray) return;
    throw this.#wrong(`there is no array at ${shownPath(this.#paths.at(-1)!)}`);
  }

  /** The current state, which defeats TypeScript's narrowing. */
  get #now(): number {
    return this.#state;
  }

  /** From a byte of an element outside of strings to its end, a string or a line break. */
  #inside(chunk: Uint8Array, from: number): number {
    const end = chunk.length;
    const outside = stopsOutside;
    const inside = stopsInside;
    const deepest = deepestJson - this.#stack.length;
    let at = from;
    let depth = this.#rowDepth;
    for (;;) {
      while (at < end && outside[chunk[at]!] === 0) at++;
      if (at === end) break;
      const byte = chunk[at]!;
      if (byte === quote) {
        at++;
        // most strings are short and end in the same chunk
        while (at < end && inside[chunk[at]!] === 0) at++;
        if (at < end && chunk[at] === quote) {
          at++;
          if (depth > 0) continue;
          this.#endRow();
          break;
        }
        this.#state = state.rowText;
        break;
      }
      if (byte === lineFeed || byte === 0x0d) break;
      at++;
      if (byte === openBrace || byte === openBracket) {
        if (++depth > deepest) throw this.#tooDeep();
      } else if (--depth === 0) {
        this.#endRow();
        break;
      }
    }
    this.#rowDepth = depth;
    return at;
  }

  /** From a byte of an element's string to after its end. */
  #rowString(chunk: Uint8Array, from: number): number {
    const at = this.#string(chunk, from);
    if (at < 0) return chunk.length;
    if (this.#rowDepth > 0) this.#state = state.rowInside;
    else this.#endRow();
    return at;
  }

  /** After the end of a string; -1 if it continues in the next chunk. */
  #string(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.#escaped && at < chunk.length) {
      this.#escaped = false;
      at++;
    }
    for (;;) {
      while (at < chunk.length && stopsInside[chunk[at]!] === 0) at++;
      if (at >= chunk.length) return -1;
      const byte = chunk[at]!;
      at++;
      if (byte === quote) return at;
      if (byte !== backslash) throw this.#wrong("a string contains a line break");
      if (at === chunk.length) {
        this.#escaped = true;
        return -1;
      }
      at++;
    }
  }

  #endRow(): void {
    this.rows++;
    this.#state = state.afterRow;
  }

  /** One byte between elements, or the first of one, which is not consumed. */
  #betweenRows(chunk: Uint8Array, at: number): number {
    const byte = chunk[at]!;
    if (isBlank(byte)) return at + 1;
    if (this.#state === state.afterRow) {
      if (byte === comma) this.#state = state.row;
      else if (byte === closeBracket) this.#endArray();
      else throw this.#wrong("a comma between two rows is missing");
      return at + 1;
    }
    if (byte === closeBracket && this.#state === state.firstRow) {
      this.#endArray();
      return at + 1;
    }
    this.#rowDepth = 0;
    if (byte === openBrace || byte === openBracket || byte === quote) this.#state = state.rowInside;
    else if (byte === comma || byte === closeBracket || byte === closeBrace || byte === colon)
      throw this.#wrong("a row is missing between two commas");
    else this.#state = state.rowScalar;
    return at;
  }

  #endArray(): void {
    this.#stack.pop();
    this.#endValue();
  }

  /** Consumes bytes outside of the elements from `from`; returns where it stopped. */
  #skeleton(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.#state === state.text || this.#state === state.keyText) {
      const end = this.#string(chunk, at);
      const stop = end < 0 ? chunk.length : end;
      const piece = chunk.subarray(at, stop);
      if (this.#state === state.keyText) this.#addToKey(piece);
      this.#keep(piece);
      if (end < 0) return stop;
      if (this.#state === state.keyText) this.#endKey();
      else this.#endValue();
      return stop;
    }
    if (this.#state === state.scalar) {
      while (at < chunk.length && !isDelimiter(chunk[at]!)) at++;
      const piece = chunk.subarray(from, at);
      this.#scalar += latin1(piece);
      if (this.#scalar.length > longestScalarBytes) throw this.#wrong("a value is invalid");
      this.#keep(piece);
      if (at < chunk.length) this.#endScalar();
      return at;
    }
    const byte = chunk[at]!;
    if (isBlank(byte)) return at + 1;
    const top = this.#stack.at(-1);
    switch (this.#state) {
      case state.firstElement:
        if (byte === closeBracket) return this.#close(chunk, at);
        this.#lead(0, 0);
        return this.#begin(chunk, at);
      case state.value:
        return this.#begin(chunk, at);
      case state.firstKey:
      case state.key:
        if (byte === closeBrace && this.#state === state.firstKey) return this.#close(chunk, at);
        if (byte !== quote) throw this.#wrong("a member's name is missing");
        this.#keep(chunk.subarray(at, at + 1));
        this.#key = (top?.alive ?? 0) === 0 ? undefined : [];
        this.#state = state.keyText;
        return at + 1;
      case state.colon:
        if (byte !== colon) throw this.#wrong("the colon after a member's name is missing");
        this.#keep(chunk.subarray(at, at + 1));
        this.#state = state.value;
        return at + 1;
      case state.after:
        if (byte === (top!.isObject ? closeBrace : closeBracket)) return this.#close(chunk, at);
        if (byte !== comma) throw this.#wrong("a comma is missing");
        this.#keep(chunk.subarray(at, at + 1));
        if (top!.isObject) this.#state = state.key;
        else {
          this.#lead(0, 0);
          this.#state = state.value;
        }
        return at + 1;
      default:
        throw this.#wrong("there is more text after the document");
    }
  }

  #lead(complete: number, leads: number): void {
    this.#complete = complete;
    this.#leads = leads;
  }

  /** The first byte of a value. */
  #begin(chunk: Uint8Array, at: number): number {
    const byte = chunk[at]!;
    const complete = this.#complete;
    const leads = this.#leads;
    this.#lead(0, 0);
    if ((complete & this.#arrayBit) !== 0) {
      if (byte !== openBracket) throw this.#wrong(`there is no array at ${shownPath(this.#paths.at(-1)!)}`);
      this.#sawArray = true;
      this.#push(false, 0);
      this.#state = state.firstRow;
      return at + 1;
    }
    if (complete !== 0 && leads === 0 && this.#capture === undefined) {
      this.#capture = "";
      this.#captured = complete;
      this.#captureDepth = this.#stack.length;
    }
    if (byte === openBrace || byte === openBracket) {
      this.#keep(chunk.subarray(at, at + 1));
      this.#push(byte === openBrace, byte === openBrace ? leads : 0);
      this.#state = byte === openBrace ? state.firstKey : state.firstElement;
      return at + 1;
    }
    if (byte === quote) {
      this.#keep(chunk.subarray(at, at + 1));
      this.#state = state.text;
      return at + 1;
    }
    if (isDelimiter(byte)) throw this.#wrong("a value is missing");
    this.#scalar = "";
    this.#state = state.scalar;
    return at;
  }

  #push(isObject: boolean, alive: number): void {
    if (this.#stack.length === deepestJson) throw this.#tooDeep();
    this.#stack.push({ isObject, alive, taken: 0 });
  }

  #close(chunk: Uint8Array, at: number): number {
    this.#keep(chunk.subarray(at, at + 1));
    this.#stack.pop();
    this.#endValue();
    return at + 1;
  }

  #endScalar(): void {
    if (!scalarForm.test(this.#scalar)) throw this.#wrong("a value is invalid");
    this.#endValue();
  }

  #endValue(): void {
    if (this.#capture !== undefined && this.#stack.length === this.#captureDepth) {
      const text = Buffer.from(this.#capture, "latin1").toString("utf8");
      for (let i = 0; i < this.#paths.length; i++) {
        if ((this.#captured & (1 << i)) !== 0) this.#found.set(i, text);
      }
      this.#capture = undefined;
    }
    this.#state = this.#stack.length === 0 ? state.done : state.after;
  }

  #addToKey(piece: Uint8Array): void {
    if (this.#key === undefined) return;
    if (this.#key.length + piece.length > longestKeyBytes) this.#key = undefined;
    else for (const byte of piece) this.#key.push(byte);
  }

  #endKey(): void {
    this.#state = state.colon;
    const top = this.#stack.at(-1)!;
    this.#lead(0, 0);
    if (this.#key === undefined) return;
    const name = this.#nameOf(this.#key);
    const depth = this.#stack.length - 1;
    let complete = 0;
    let leads = 0;
    for (let i = 0; i < this.#paths.length; i++) {
      const bit = 1 << i;
      const path = this.#paths[i]!;
      if ((top.alive & bit) === 0 || path[depth] !== name) continue;
      if (path.length === depth + 1) complete |= bit;
      else leads |= bit;
    }
    if ((top.taken & (complete | leads)) !== 0) throw this.#wrong(`${JSON.stringify(name)} appears twice`);
    top.taken |= complete | leads;
    this.#lead(complete, leads);
  }

  /** A key by its bytes up to its closing quote. */
  #nameOf(bytes: number[]): string {
    try {
      return JSON.parse(`"${Buffer.from(bytes).toString("utf8")}`) as string;
    } catch {
      throw this.#wrong("a name is invalid");
    }
  }

  #keep(piece: Uint8Array): void {
    if (this.#capture === undefined) return;
    if (this.#capture.length + piece.length > this.#mostValueBytes) {
      throw this.#wrong(`a required value is longer than ${this.#mostValueBytes} bytes`);
    }
    this.#capture += latin1(piece);
  }

  #tooDeep(): RunvaultError {
    return this.#wrong(`it is nested deeper than ${deepestJson} levels`);
  }

  #wrong(what: string): RunvaultError {
    return new RunvaultError("not_a_gateway", `the answer is not as the profile says: ${what}`, {
      place: this.#place,
      // nothing else is read
      status: 200,
      hint: "Compare the profile with the gateway's answers; `runvault profile check` shows both.",
    });
  }
}

function shownPath(path: readonly string[]): string {
  return path.length === 0 ? "the beginning of the document" : path.join(".");
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === lineFeed || byte === 0x0d || byte === 0x09;
}

function isLineBreak(byte: number | undefined): boolean {
  return byte === lineFeed || byte === 0x0d;
}

/** What ends a number or a word. */
function isDelimiter(byte: number): boolean {
  return (
    isBlank(byte) ||
    byte === comma ||
    byte === closeBracket ||
    byte === closeBrace ||
    byte === colon ||
    byte === quote ||
    byte === openBrace ||
    byte === openBracket
  );
}

function latin1(piece: Uint8Array): string {
  return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("latin1");
}
