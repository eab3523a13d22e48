import { LRUCache } from "lru-cache";
import type { Segment } from "../manifest/manifest.ts";
import type { Store } from "../storage/store.ts";
import { readSegment } from "../write/segment.ts";

/**
 * Segment texts shared by all readers of an archive. Simultaneous readers share a decompression, and recent texts are
 * kept: a reader of ten rows needs a whole segment, and usually comes back for the next ten.
 */
export class SegmentCache {
  readonly #store: Store;
  /** By SHA-256: a run that is removed and archived again has files with the same names but other bytes. */
  readonly #kept: LRUCache<string, Promise<Buffer>>;

  /** Keeps texts of `mostBytes` in all. */
  constructor(store: Store, mostBytes: number) {
    this.#store = store;
    this.#kept = new LRUCache({ maxSize: Math.max(1, mostBytes) });
  }

  /** Like `readSegment`; the text is shared and must not be changed. */
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
