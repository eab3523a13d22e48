import { RunvaultError } from "../model/error.ts";
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
  private readonly options: CursorPoolOptions;
  private readonly kept = new Map<string, { cursor: RowCursor; timer: NodeJS.Timeout }>();
  private isClosed = false;

  constructor(options: CursorPoolOptions) {
    this.options = options;
  }

  /** Cursors kept now. */
  get size(): number {
    return this.kept.size;
  }

  /** The cursor that stands where the token points, which is the caller's from now on; undefined where it is gone. */
  take(token: string): RowCursor | undefined {
    const entry = this.kept.get(token);
    if (entry === undefined) return undefined;
    clearTimeout(entry.timer);
    this.kept.delete(token);
    return entry.cursor;
  }

  /** Keeps a cursor until its token comes, or until it is in the way. */
  put(token: string, cursor: RowCursor): void {
    // two requests with one token end at the same place: one cursor is enough
    const double = this.take(token);
    if (double !== undefined) this.close(double);
    const timer = setTimeout(() => this.drop(token), this.options.idleMs).unref();
    this.kept.set(token, { cursor, timer });
    if (this.isClosed) this.drop(token);
    this.makeRoom();
  }

  /** Closes those unused for longest until the rest is within both limits. */
  private makeRoom(): void {
    let bytes = 0;
    for (const { cursor } of this.kept.values()) bytes += cursor.heldBytes;
    for (const [token, { cursor }] of this.kept) {
      const isOver = bytes > this.options.mostBytes && this.kept.size > 1;
      if (this.kept.size <= this.options.most && !isOver) return;
      bytes -= cursor.heldBytes;
      this.drop(token);
    }
  }

  /** Closes a cursor that nobody goes on with. */
  close(cursor: RowCursor): void {
    cursor[Symbol.asyncDispose]().catch((error) => this.options.onError(RunvaultError.from(error)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true;
    const cursors = [...this.kept.keys()].map((token) => this.take(token)!);
    await Promise.all(cursors.map((cursor) => cursor[Symbol.asyncDispose]()));
  }

  private drop(token: string): void {
    const cursor = this.take(token);
    if (cursor !== undefined) this.close(cursor);
  }
}
