import { RunvaultError } from "../../model/error.ts";
import type { HistorySource, RowRequest } from "../../model/source.ts";
import type { RowWire } from "../../row/wire/row-wire.ts";

const lineEnd = 10;
const carriageReturn = 13;
const maxLineBytes = 16 * 1024 * 1024;
const nothing = Buffer.alloc(0);

/** An open answer of a source, read row by row, by one reader at a time. */
export class RowCursor implements AsyncDisposable {
  /** Rows returned so far with the last one's `ts_event`. */
  given = 0;
  /** Number of the next page, from 1. */
  page = 1;
  eventHigh = 0;
  eventLow = 0;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #leaving = new AbortController();
  #text: Buffer = nothing;
  /** After the last line end of the text; the rest is the beginning of a line. */
  #whole = 0;
  #at = 0;
  /** Text to follow `text`, after a line was joined from two chunks. */
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

  /** Bytes of text held until it continues, as far as known. */
  get heldBytes(): number {
    return this.#text.length + this.#pending.length;
  }

  /** The line of the last kept row, without its end. */
  get keptLine(): Uint8Array {
    return this.#keptText.subarray(this.#keptStart, this.#keptEnd);
  }

  /** The line returned last, without its end. */
  get line(): Uint8Array {
    return this.#text.subarray(this.#lineStart, this.#lineEnd);
  }

  /** Bytes of the line returned last. */
  get lineBytes(): number {
    return this.#lineEnd - this.#lineStart;
  }

  /**
   * Writes the next row. `wait`: no whole line is available, call `more`. Throws `history_query_failed` if a line does
   * not fit its message.
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
        // a blank line is not a row
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

  /** Counts the last row as returned for good. */
  keep(wire: RowWire): void {
    const isSame = wire.eventHigh === this.eventHigh && wire.eventLow === this.eventLow;
    this.given = isSame ? this.given + 1 : 1;
    this.eventHigh = wire.eventHigh;
    this.eventLow = wire.eventLow;
    this.#keptText = this.#text;
    this.#keptStart = this.#lineStart;
    this.#keptEnd = this.#lineEnd;
  }

  /** Releases the last kept row's line, which may hold on to text already returned. */
  forgetLine(): void {
    this.#keptText = nothing;
    this.#keptStart = 0;
    this.#keptEnd = 0;
  }

  /** Takes the last row back, so that the next call returns it again. */
  stepBack(): void {
    this.#at = this.#lineStart;
    this.#rows -= 1;
  }

  /** Reads more from the source; false at its end. `signal` ends the whole cursor. */
  async more(signal: AbortSignal): Promise<boolean> {
    if (this.#pending.length > 0) {
      // the joined line has been read
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
    // a last line without its end also counts
    this.#take(Buffer.concat([...left, Buffer.of(lineEnd)]));
    return true;
  }

  #take(text: Buffer): void {
    this.#text = text;
    this.#whole = text.lastIndexOf(lineEnd) + 1;
    this.#at = 0;
  }

  /** Whether rows are left. */
  async hasMore(signal: AbortSignal): Promise<boolean> {
    while (this.#at >= this.#text.length) if (!(await this.more(signal))) return false;
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort(new RunvaultError("interrupted", "the reader of these rows has disconnected"));
    await this.#chunks.return?.();
  }
}

/** The byte loop is slower with two kinds of array, so it gets only one. */
function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
