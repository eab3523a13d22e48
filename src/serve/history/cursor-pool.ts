import { LRUCache } from "lru-cache";
import { RunvaultError } from "../../model/error.ts";
import type { RowCursor } from "./row-cursor.ts";

export interface CursorPoolOptions {
  /** Most cursors kept; one more closes the one unused for longest. */
  readonly most: number;
  /** Most bytes of text that the kept ones hold together; the one kept last stays however much it holds. */
  readonly mostBytes: number;
  /** A cursor that nobody asks for is closed after that long. */
  readonly idleMs: number;
  /** Told why a cursor could not be closed. */
  readonly onError: (error: RunvaultError) => void;
}

/**
 * Cursors between two pages, by the token that goes on with them. Without their cursor tokens still hold, but going on
 * costs a new answer of the source, which may have to decompress what lies ahead of the page.
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
      // one that holds more than all may takes the room of all
      sizeCalculation: ({ heldBytes }) => Math.min(Math.max(1, heldBytes), mostBytes),
      ttl: idleMs,
      ttlAutopurge: true,
      // what is still there is as good as new, however late its timer
      allowStale: true,
      noDeleteOnStaleGet: true,
      // deleted is what was taken; two requests with one token end at the same place, where one cursor is enough
      dispose: (cursor, _token, reason) => {
        if (reason !== "delete") this.close(cursor);
      },
    });
  }

  /** Cursors kept now. */
  get size(): number {
    return this.#kept.size;
  }

  /** The cursor that stands where the token points, which is the caller's from now on; undefined where it is gone. */
  take(token: string): RowCursor | undefined {
    const cursor = this.#kept.get(token);
    this.#kept.delete(token);
    return cursor;
  }

  /** Keeps a cursor until its token comes, or until it is in the way. */
  put(token: string, cursor: RowCursor): void {
    if (this.#isClosed) this.close(cursor);
    else this.#kept.set(token, cursor);
  }

  /** Closes a cursor that nobody goes on with. */
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
