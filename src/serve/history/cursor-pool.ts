import { LRUCache } from "lru-cache";
import { RunvaultError } from "../../model/error.ts";
import type { RowCursor } from "./row-cursor.ts";

export interface CursorPoolOptions {
  /** Most cursors kept; another one closes the least recently used. */
  readonly most: number;
  /** Most bytes of text held by all kept cursors; the last one stays however much it holds. */
  readonly mostBytes: number;
  /** An unused cursor is closed after this time. */
  readonly idleMs: number;
  /** Called when a cursor could not be closed. */
  readonly onError: (error: RunvaultError) => void;
}

/**
 * Cursors between two pages, by the token of the next page. Without its cursor a token still works, but needs a new
 * answer of the source, which may have to decompress everything before the page.
 */
export class CursorPool implements AsyncDisposable {
  readonly #options: CursorPoolOptions;
  readonly #kept: LRUCache<string, RowCursor>;
  #isClosed = false;

  constructor(options: CursorPoolOptions) {
    const { most, mostBytes, idleMs } = options;
    this.#options = options;
    this.#kept = new LRUCache({
      max: most,
      maxSize: mostBytes,
      // a cursor over the total limit takes all the room
      sizeCalculation: ({ heldBytes }) => Math.min(Math.max(1, heldBytes), mostBytes),
      ttl: idleMs,
      ttlAutopurge: true,
      // an overdue cursor is still good
      allowStale: true,
      noDeleteOnStaleGet: true,
      // 'delete' means it was taken; two requests with one token stop at the same place, where one cursor is enough
      dispose: (cursor, _token, reason) => {
        if (reason !== "delete") this.close(cursor);
      },
    });
  }

  /** Cursors kept now. */
  get size(): number {
    return this.#kept.size;
  }

  /** The cursor for a token, which then belongs to the caller; undefined if it is gone. */
  take(token: string): RowCursor | undefined {
    const cursor = this.#kept.get(token);
    this.#kept.delete(token);
    return cursor;
  }

  /** Keeps a cursor until its token comes, or it is evicted. */
  put(token: string, cursor: RowCursor): void {
    if (this.#isClosed) this.close(cursor);
    else this.#kept.set(token, cursor);
  }

  /** Closes a cursor that will not be continued. */
  close(cursor: RowCursor): void {
    cursor[Symbol.asyncDispose]().catch((error) => this.#options.onError(RunvaultError.from(error)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const cursors = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.all(cursors.map((cursor) => cursor[Symbol.asyncDispose]()));
  }
}
