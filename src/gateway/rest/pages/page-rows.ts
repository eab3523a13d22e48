import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import { blankLinesIn, refuseEndlessBlanks } from "../../../row/blank-lines.ts";
import type { RowForm } from "../../profile/profile.ts";
import { DocumentScanner } from "./document-scanner.ts";

/** Extracts the rows of one answer, one per line, each with its line end. */
export interface PageRows {
  /** Rows completed so far. */
  readonly rows: number;
  push(chunk: Uint8Array): Uint8Array;
  /** The rest after the last byte. Throws `stream_cut` if the answer is incomplete. */
  end(): Uint8Array;
  /** The JSON text of a value besides the rows; undefined if there is none. */
  value(index: number): string | undefined;
}

/** The rows of an answer in that form, with the values at these places. */
export function pageRows(form: RowForm, values: readonly (readonly string[])[], place: ErrorPlace): PageRows {
  if (form.form === "lines") return new LineRows(place);
  const scanner = new DocumentScanner({ array: form.path, values: [...values, ["ok"]] }, place);
  return {
    get rows() {
      return scanner.rows;
    },
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end();
      if (scanner.value(values.length) === "false") {
        const message = "the gateway sent ok: false with its rows, so rows are missing";
        throw new RunvaultError("server_error", message, { place, status: 200 });
      }
      return nothing;
    },
    value: (index) => scanner.value(index),
  };
}

/** Lines of a single answer, unchanged: the reader skips blank ones and sees a truncation. */
export function uncountedLines(): PageRows {
  return { rows: 0, push: (chunk) => chunk, end: () => nothing, value: () => undefined };
}

const nothing = new Uint8Array(0);
const lineFeed = 0x0a;
const closeBrace = 0x7d;
const byteOrderMark = Uint8Array.of(0xef, 0xbb, 0xbf);

/** Lines without blank ones; the last one gets a line end. Throws `malformed_row` for endless blank lines. */
class LineRows implements PageRows {
  rows = 0;
  readonly #place: ErrorPlace;
  /** Whether an unfinished line was passed on, and its last non-blank byte. */
  #isOpen = false;
  #lastByte = 0;
  #blankLines = 0;
  /** Bytes of a leading byte order mark so far; undefined once past it. */
  #mark: number | undefined = 0;

  constructor(place: ErrorPlace) {
    this.#place = place;
  }

  push(given: Uint8Array): Uint8Array {
    const chunk = this.#mark === undefined ? given : this.#withoutMark(given);
    let kept: Uint8Array[] | undefined;
    let from = 0;
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(lineFeed, start);
      const end = found < 0 ? chunk.length : found + 1;
      if (this.#isOpen || !isBlank(chunk, start, end)) {
        this.#isOpen = found < 0;
        if (found >= 0) this.rows++;
        else this.#lastByte = lastByteOf(chunk, start) ?? this.#lastByte;
      } else {
        this.#blankLines += blankLinesIn(end - start);
        refuseEndlessBlanks(this.#blankLines, this.rows, this.#place);
        kept ??= [];
        if (start > from) kept.push(chunk.subarray(from, start));
        from = end;
      }
      start = end;
    }
    if (kept === undefined) return chunk;
    kept.push(chunk.subarray(from));
    return Buffer.concat(kept);
  }

  /** Some servers begin with a byte order mark, even without rows. */
  #withoutMark(chunk: Uint8Array): Uint8Array {
    let at = 0;
    while (this.#mark !== undefined && at < chunk.length) {
      if (chunk[at] === byteOrderMark[this.#mark]) {
        at++;
        this.#mark = this.#mark === 2 ? undefined : this.#mark + 1;
        continue;
      }
      const before = byteOrderMark.subarray(0, this.#mark);
      this.#mark = undefined;
      return Buffer.concat([before, chunk.subarray(at)]);
    }
    return chunk.subarray(at);
  }

  end(): Uint8Array {
    if (!this.#isOpen) return nothing;
    // a complete row may lack its line end
    if (this.#lastByte !== closeBrace) {
      throw new RunvaultError("stream_cut", "the answer ended in the middle of a row", {
        place: this.#place,
      });
    }
    this.#isOpen = false;
    this.rows++;
    return Uint8Array.of(lineFeed);
  }

  value(): undefined {
    return undefined;
  }
}

function lastByteOf(bytes: Uint8Array, start: number): number | undefined {
  for (let at = bytes.length - 1; at >= start; at--) if (!isBlankByte(bytes[at]!)) return bytes[at];
  return undefined;
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isBlankByte(bytes[at]!)) return false;
  return true;
}

function isBlankByte(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === lineFeed;
}
