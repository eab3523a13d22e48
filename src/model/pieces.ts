/** Shorter pieces are copied together: kept one by one, each byte of an answer could cost a hundred. */
const ownBytes = 16 * 1024;
const slabBytes = 64 * 1024;

/** Collects the pieces of a text, however finely it is cut. */
export class Pieces {
  bytes = 0;
  #parts: Uint8Array[] = [];
  #slab: Buffer | undefined;
  /** In the slab: where the current part begins, and where the next byte goes. */
  #from = 0;
  #at = 0;

  /** Adds a piece. A long one is not copied, so its memory must not be reused. */
  add(piece: Uint8Array): void {
    this.bytes += piece.byteLength;
    if (piece.byteLength >= ownBytes) {
      this.#endPart();
      this.#parts.push(piece);
      return;
    }
    if (this.#slab === undefined || this.#at + piece.byteLength > this.#slab.byteLength) {
      this.#endPart();
      this.#slab = Buffer.allocUnsafe(slabBytes);
      this.#from = this.#at = 0;
    }
    this.#slab.set(piece, this.#at);
    this.#at += piece.byteLength;
  }

  /** All of it in one; empties it. */
  take(): Buffer {
    this.#endPart();
    const [first] = this.#parts;
    const whole =
      first !== undefined && this.#parts.length === 1
        ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
        : Buffer.concat(this.#parts);
    this.#parts = [];
    this.bytes = 0;
    return whole;
  }

  #endPart(): void {
    if (this.#at > this.#from) this.#parts.push(this.#slab!.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }
}
