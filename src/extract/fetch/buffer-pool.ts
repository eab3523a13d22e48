/**
 * A fixed number of equal buffers that slices fill and compression empties. Waiting for a buffer slows the network
 * down to the pace of the disk and keeps memory flat.
 */
export class BufferPool {
  readonly #bytes: number;
  readonly #idle: Buffer[] = [];
  readonly #waiting: ((buffer: Buffer) => void)[] = [];
  #left: number;

  /** `count` must exceed the number of slices in flight: each holds one while it waits for the next. */
  constructor(count: number, bytes: number) {
    this.#left = count;
    this.#bytes = bytes;
  }

  async acquire(): Promise<Buffer> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#left > 0) {
      this.#left--;
      return Buffer.allocUnsafeSlow(this.#bytes);
    }
    return await new Promise<Buffer>((resolve) => this.#waiting.push(resolve));
  }

  /** Returns a buffer's place to the pool. A buffer that had to grow is not kept: a new one takes its place. */
  release(buffer: Buffer): void {
    const kept = buffer.byteLength === this.#bytes ? buffer : undefined;
    const next = this.#waiting.shift();
    if (next !== undefined) next(kept ?? Buffer.allocUnsafeSlow(this.#bytes));
    else if (kept !== undefined) this.#idle.push(kept);
    else this.#left++;
  }
}
