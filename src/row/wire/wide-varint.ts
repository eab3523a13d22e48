import { malformed } from "./wire-cursor.ts";

/** A varint of up to 64 bits in two 32-bit halves, without a bigint, which is an object. */
export class WideVarint {
  high = 0;
  low = 0;

  /** Reads the one at `start` and returns where it ends, which may be after the row's end. Throws `malformed_row`. */
  read(page: Uint8Array, start: number): number {
    let at = start;
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = page[at++]!;
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.low = low;
        this.high = 0;
        return at;
      }
    }
    let byte = page[at++]!;
    low |= (byte & 0x7f) << 28;
    let high = (byte & 0x7f) >>> 4;
    for (let shift = 3; byte >= 0x80; shift += 7) {
      byte = page[at++]!;
      if (shift === 31 && byte > 1) throw malformed("a varint has more than 64 bits");
      high |= (byte & 0x7f) << shift;
    }
    // past the page's end there is no byte, which counts as the end here; the caller notices
    this.low = low;
    this.high = high;
    return at;
  }
}
