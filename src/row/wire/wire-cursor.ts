import { RunvaultError } from "../../model/error.ts";

/** How a value is encoded in protobuf. Groups (3 and 4) exist only in proto2 and are refused. */
export const wireType = { varint: 0, fixed64: 1, length: 2, fixed32: 5 } as const;

/**
 * Steps over the fields of one protobuf message, as bytes. Every step is checked against the message's end, so a
 * message cut inside a field is never taken for a whole one.
 */
export class WireCursor {
  readonly #bytes: Uint8Array;
  #end: number;
  pos: number;
  /** The field at the cursor: its number and wire type, and where tag and value begin. */
  number = 0;
  type = 0;
  tagAt = 0;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.pos = start;
    this.#end = end;
  }

  /** Moves to another message in the same bytes, because a cursor for each row would be too many. */
  moveTo(start: number, end: number): void {
    this.pos = start;
    this.#end = end;
  }

  /** Reads the next field's tag; false at the end of the message. Throws `malformed_row`. */
  next(): boolean {
    if (this.pos === this.#end) return false;
    this.tagAt = this.pos;
    const tag = this.#uint32();
    this.number = tag >>> 3;
    this.type = tag & 7;
    if (this.number === 0) throw malformed("a field has the number 0");
    return true;
  }

  /** Enters a value with a length: returns its end, and moves to its start. */
  enter(): number {
    const length = this.#uint32();
    const end = this.pos + length;
    if (end > this.#end) throw truncated();
    return end;
  }

  /** Steps over the value of the current field. */
  skip(): void {
    switch (this.type) {
      case wireType.varint: {
        const last = this.pos + 9;
        while (this.#byte() >= 0x80) if (this.pos > last) throw malformed("a varint has more than 10 bytes");
        return;
      }
      case wireType.fixed64:
        this.pos += 8;
        break;
      case wireType.length:
        this.pos = this.enter();
        return;
      case wireType.fixed32:
        this.pos += 4;
        break;
      default:
        throw malformed(`field ${this.number} has the wire type ${this.type}`);
    }
    if (this.pos > this.#end) throw truncated();
  }

  #byte(): number {
    if (this.pos >= this.#end) throw truncated();
    return this.#bytes[this.pos++]!;
  }

  /** A tag or a length: no message needs more than 32 bits. */
  #uint32(): number {
    let value = 0;
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.#byte();
      if (shift === 28 && byte > 0x0f) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed("a tag or length has more than 32 bits");
  }
}

export function malformed(what: string): RunvaultError {
  return new RunvaultError("malformed_row", `the page is not a complete protobuf message of rows: ${what}`, {
    hint: "Nothing from this page was used. Check the gateway and any proxy in front of it: answers are damaged, or differ from the contract in proto/.",
  });
}

export function truncated(): RunvaultError {
  return malformed("it ends inside a field");
}
