import type { Segment } from "./manifest.ts";
import { readSegment } from "./segment.ts";
import type { Store } from "./storage/store.ts";

/**
 * Texts of segments for all readers of an archive. What one of them reads, another that wants it gets too, and the last
 * ones are kept: a reader of ten rows needs a whole segment decompressed, and mostly comes again for the next ten.
 */
export class SegmentTexts {
  readonly #store: Store;
  readonly #mostBytes: number;
  /**
   * By SHA-256, the one that was wanted last at the end. A run that is removed and archived again has files of the same
   * names, so a name does not stand for its bytes.
   */
  readonly #kept = new Map<string, { readonly text: Promise<Buffer>; readonly bytes: number }>();
  #bytes = 0;

  /** Keeps texts of `mostBytes` in all. */
  constructor(store: Store, mostBytes: number) {
    this.#store = store;
    this.#mostBytes = mostBytes;
  }

  /** As `readSegment`; the text is shared, and not to be written to. */
  async read(key: string, segment: Segment): Promise<Buffer> {
    const { sha256 } = segment;
    const known = this.#kept.get(sha256);
    this.#forget(sha256);
    const text = known?.text ?? readSegment(this.#store, key, segment);
    this.#kept.set(sha256, { text, bytes: segment.bytes });
    this.#bytes += segment.bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#mostBytes) break;
      this.#forget(oldest);
    }
    try {
      return await text;
    } catch (error) {
      // what cannot be read now may be readable later
      if (this.#kept.get(sha256)?.text === text) this.#forget(sha256);
      throw error;
    }
  }

  #forget(sha256: string): void {
    this.#bytes -= this.#kept.get(sha256)?.bytes ?? 0;
    this.#kept.delete(sha256);
  }
}
