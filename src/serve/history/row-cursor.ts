import { RunvaultError } from "../../model/error.ts";
import type { HistorySource, RowRequest } from "../../model/source.ts";
import type { RowWire } from "../../row/wire/row-wire.ts";

const lineEnd = 10;
const carriageReturn = 13;
const maxLineBytes = 16 * 1024 * 1024;
const nothing = Buffer.alloc(0);

/** An answer of a source under way, taken row by row. It belongs to one reader at a time. */
export class RowCursor implements AsyncDisposable {
  /** Rows given so far that share the last one's `ts_event`. */
  given = 0;
  /** Number of the page to come, from 1. */
  page = 1;
  eventHigh = 0;
  eventLow = 0;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #leaving = new AbortController();
  #text: Buffer = nothing;
  /** Behind the last line end of the text; what follows is the beginning of a line. */
  #whole = 0;
  #at = 0;
  /** What follows `text`, where a line across two chunks was put together. */
  #pending: Buffer = nothing;
  #isExhausted = false;
  #rows = 0;
  #lineStart = 0;
  #lineEnd = 0;
  #keptText: Uint8Array = nothing;
  #keptStart = 0;
  #keptEnd = 0;
  readonly #name: string;

  constructor(source: HistorySource, request: Omit<RowRequest, "signal" | "limit">) {
    this.#name = `of the rows of ${request.table} of ${request.instanceId}/${request.runId}`;
    this.#chunks = source.rows({ ...request, signal: this.#leaving.signal })[Symbol.asyncIterator]();
  }

  /** Bytes of text that going on later takes, as far as they are known here. */
  get heldBytes(): number {
    return this.#text.length + this.#pending.length;
  }

  /** The line of the row kept last, without its end. */
  get keptLine(): Uint8Array {
    return this.#keptText.subarray(this.#keptStart, this.#keptEnd);
  }

  /** The line given last, without its end. */
  get line(): Uint8Array {
    return this.#text.subarray(this.#lineStart, this.#lineEnd);
  }

  /** Bytes of the line given last. */
  get lineBytes(): number {
    return this.#lineEnd - this.#lineStart;
  }

  /**
   * Writes the next row. `wait` is that no whole line is here: `more` gets it. Throws `history_query_failed` where a
   * line does not fit its message.
   */
  next(wire: RowWire): "row" | "wait" {
    const text = this.#text;
    const at = this.#at;
    if (at >= this.#whole) return "wait";
    let end = wire.appendCanonical(text, at) - 1;
    if (end < 0) {
      for (let start = at; ; start = end + 1) {
        end = text.indexOf(lineEnd, start);
        if (end === -1) {
          this.#at = start;
          return "wait";
        }
        // a blank line is no row
        if (end === start || (end === start + 1 && text[start] === carriageReturn)) continue;
        wire.appendLine(text.subarray(start, end), `row ${this.#rows + 1} ${this.#name}`);
        this.#lineStart = start;
        break;
      }
    } else this.#lineStart = at;
    this.#lineEnd = end;
    this.#at = end + 1;
    this.#rows += 1;
    return "row";
  }

  /** Counts the row given last as one that stays given. */
  keep(wire: RowWire): void {
    const isSame = wire.eventHigh === this.eventHigh && wire.eventLow === this.eventLow;
    this.given = isSame ? this.given + 1 : 1;
    this.eventHigh = wire.eventHigh;
    this.eventLow = wire.eventLow;
    this.#keptText = this.#text;
    this.#keptStart = this.#lineStart;
    this.#keptEnd = this.#lineEnd;
  }

  /** Lets go of the line of the row kept last, which may hold on to text that has all been given. */
  forgetLine(): void {
    this.#keptText = nothing;
    this.#keptStart = 0;
    this.#keptEnd = 0;
  }

  /** Gives the row given last again next time. */
  stepBack(): void {
    this.#at = this.#lineStart;
    this.#rows -= 1;
  }

  /** Gets what comes next of the source; false at its end. `signal` ends the whole cursor. */
  async more(signal: AbortSignal): Promise<boolean> {
    if (this.#pending.length > 0) {
      // the line put together has been read whole
      this.#take(this.#pending);
      this.#pending = nothing;
      return true;
    }
    const left: Uint8Array[] = this.#at < this.#text.length ? [this.#text.subarray(this.#at)] : [];
    let leftBytes = this.#text.length - this.#at;
    this.#take(nothing);
    const leave = () => this.#leaving.abort(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    try {
      while (!this.#isExhausted) {
        const chunk = await this.#chunks.next();
        signal.throwIfAborted();
        if (chunk.done === true) {
          this.#isExhausted = true;
          break;
        }
        const text = bufferOver(chunk.value);
        const end = left.length === 0 ? 0 : text.indexOf(lineEnd) + 1;
        if (left.length === 0 || end > 0) {
          this.#take(left.length === 0 ? text : Buffer.concat([...left, text.subarray(0, end)]));
          this.#pending = left.length === 0 ? nothing : text.subarray(end);
          if (this.#text.length > 0) return true;
          continue;
        }
        left.push(text);
        leftBytes += text.length;
        if (leftBytes > maxLineBytes) {
          throw new RunvaultError(
            "line_too_long",
            `row ${this.#rows + 1} ${this.#name} is longer than 16 MiB`,
          );
        }
      }
    } finally {
      signal.removeEventListener("abort", leave);
    }
    if (left.length === 0) return false;
    // a last line without its end is a line too
    this.#take(Buffer.concat([...left, Buffer.of(lineEnd)]));
    return true;
  }

  #take(text: Buffer): void {
    this.#text = text;
    this.#whole = text.lastIndexOf(lineEnd) + 1;
    this.#at = 0;
  }

  /** Whether anything is left to give. */
  async hasMore(signal: AbortSignal): Promise<boolean> {
    while (this.#at >= this.#text.length) if (!(await this.more(signal))) return false;
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort(new RunvaultError("interrupted", "the reader of these rows has disconnected"));
    await this.#chunks.return?.();
  }
}

/** One kind of array in the loop over bytes, which is slower for two. */
function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
