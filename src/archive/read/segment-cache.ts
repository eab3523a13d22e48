import { LRUCache } from "lru-cache";
import type { Segment } from "../manifest/manifest.ts";
import type { Store } from "../storage/store.ts";
import { readSegment } from "../write/segment.ts";

/**
 * Texts of segments for all readers of an archive. What one of them reads, another that wants it gets too, and the last
 * ones are kept: a reader of ten rows needs a whole segment decompressed, and mostly comes again for the next ten.
 */
export class SegmentCache {
  readonly #store: Store;
  /**
   * By SHA-256. A run that is removed and archived again has files of the same names, so a name does not stand for its
   * bytes.
   */
  readonly #kept: LRUCache<string, Promise<Buffer>>;

  /** Keeps texts of `mostBytes` in all. */
  constructor(store: Store, mostBytes: number) {
    this.#store = store;
    this.#kept = new LRUCache({ maxSize: Math.max(1, mostBytes) });
  }

  /** As `readSegment`; the text is shared, and not to be written to. */
  async read(key: string, segment: Segment): Promise<Buffer> {
    const { sha256 } = segment;
    const known = this.#kept.get(sha256);
    const text = known ?? readSegment(this.#store, key, segment);
    if (known === undefined) this.#kept.set(sha256, text, { size: Math.max(1, segment.bytes) });
    try {
      return await text;
    } catch (error) {
      // what cannot be read now may be readable later
      if (this.#kept.peek(sha256) === text) this.#kept.delete(sha256);
      throw error;
    }
  }
}
