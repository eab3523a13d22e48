import { crc32 } from "node:zlib";
import { Pieces } from "../../../model/pieces.ts";
import { lineTooLong, longestLineBytes } from "../../../row/line.ts";

const lineFeed = 0x0a;

/** Remembers a page's first and last row, and a digest of all. */
export class PageWatch {
  #first: Buffer | undefined;
  readonly #begin = new Pieces();
  #last: Uint8Array | undefined;
  #tail: Uint8Array[] = [];
  #tailBytes = 0;
  #crc = 0;
  #bytes = 0;

  /** Takes rows in, one a line. */
  see(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#crc = crc32(chunk, this.#crc);
    this.#bytes += chunk.length;
    if (this.#first === undefined) {
      const end = chunk.indexOf(lineFeed);
      this.#begin.add(end < 0 ? chunk : chunk.subarray(0, end));
      if (end >= 0) this.#first = this.#begin.take();
    }
    const end = chunk.lastIndexOf(lineFeed);
    if (end < 0) {
      this.#hold(chunk);
      return;
    }
    const before = end === 0 ? -1 : chunk.lastIndexOf(lineFeed, end - 1);
    this.#last =
      before >= 0 ? chunk.subarray(before + 1, end) : Buffer.concat([...this.#tail, chunk.subarray(0, end)]);
    this.#tail = [];
    this.#tailBytes = 0;
    this.#hold(chunk.subarray(end + 1));
  }

  #hold(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#tail.push(piece);
    this.#tailBytes += piece.length;
    if (this.#tailBytes > longestLineBytes) {
      throw lineTooLong("row");
    }
  }

  /** The bytes of the first row; undefined until it is complete. */
  get first(): Buffer | undefined {
    return this.#first;
  }

  /** The bytes of the last row. */
  get last(): Uint8Array | undefined {
    return this.#last;
  }

  /** Differs between different pages. */
  get mark(): string {
    return `${this.#bytes} ${this.#crc}`;
  }
}
