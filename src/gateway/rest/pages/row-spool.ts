import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { RunvaultError } from "../../../model/error.ts";
import { makeTemporaryFolder } from "../../../model/temporary-folder.ts";
import { lineTooLong, longestLineBytes } from "../../../row/line.ts";

const pieceBytes = 1024 * 1024;
const lineFeed = 0x0a;

/** Rows, one per line, in a temporary file until they can be returned. Disposing it removes them. */
export class RowSpool implements AsyncDisposable {
  readonly #folder: string;
  readonly #file: FileHandle;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #written = 0;

  private constructor(folder: string, file: FileHandle) {
    this.#folder = folder;
    this.#file = file;
  }

  static async open(): Promise<RowSpool> {
    const folder = await makeTemporaryFolder("rows");
    try {
      return new RowSpool(folder, await open(join(folder, "rows"), "wx+", 0o600));
    } catch (thrown) {
      await rm(folder, { recursive: true, force: true });
      throw RunvaultError.from(thrown);
    }
  }

  /** Bytes stored so far. */
  get bytes(): number {
    return this.#written + this.#waitingBytes;
  }

  /** Appends rows. The bytes must not be changed afterwards. */
  async add(chunk: Uint8Array): Promise<void> {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= pieceBytes) await this.#write();
  }

  /** Drops everything after so many bytes. */
  async cutTo(bytes: number): Promise<void> {
    await this.#write();
    this.#written = Math.min(this.#written, bytes);
  }

  /** The rows in their original order. */
  async *forward(): AsyncGenerator<Uint8Array, undefined> {
    await this.#write();
    for (let at = 0; at < this.#written; at += pieceBytes) {
      yield await this.#read(at, Math.min(pieceBytes, this.#written - at));
    }
  }

  /** The rows from the last to the first. Throws `line_too_long` for one over 16 MiB. */
  async *backward(): AsyncGenerator<Uint8Array, undefined> {
    await this.#write();
    /** The start of a piece up to its first line end, which belongs to a line of the preceding piece. */
    let rest: Uint8Array[] = [];
    let restBytes = 0;
    for (let end = this.#written; end > 0; ) {
      const start = Math.max(0, end - pieceBytes);
      const piece = await this.#read(start, end - start);
      // a line includes its line end: the one just before `stop` ends the last line
      const cut = start === 0 ? 0 : piece.indexOf(lineFeed) + 1;
      if (start > 0 && (cut === 0 || cut === piece.length)) {
        // no line begins in this piece, or its last byte ends one that began earlier
        rest.unshift(piece);
        restBytes += piece.length;
        if (restBytes > 2 * (longestLineBytes + pieceBytes)) {
          throw lineTooLong("row");
        }
        end = start;
        continue;
      }
      const lines = rest.length === 0 ? piece.subarray(cut) : Buffer.concat([piece.subarray(cut), ...rest]);
      yield reversed(lines);
      rest = cut === 0 ? [] : [piece.subarray(0, cut)];
      restBytes = cut;
      end = start;
    }
    if (rest.length > 0) yield reversed(Buffer.concat(rest));
  }

  async #write(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#written + at);
        at += bytesWritten;
      }
    } catch (thrown) {
      throw this.#failed(thrown);
    }
    this.#written += bytes.length;
  }

  async #read(from: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    try {
      for (let at = 0; at < length; ) {
        const { bytesRead } = await this.#file.read(bytes, at, length - at, from + at);
        if (bytesRead === 0) throw new Error("the temporary file of rows has become shorter");
        at += bytesRead;
      }
    } catch (thrown) {
      throw this.#failed(thrown);
    }
    return bytes;
  }

  #failed(cause: unknown): RunvaultError {
    const { code, message } = RunvaultError.from(cause);
    return new RunvaultError(code, `the rows cannot be kept in a temporary file: ${message}`, {
      cause,
      place: { file: this.#folder },
      hint: "Set TMPDIR to a writable folder on a disk with free space.",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#file.close();
    } finally {
      await rm(this.#folder, { recursive: true, force: true });
    }
  }
}

/** Whole lines in reverse order. */
function reversed(lines: Uint8Array): Uint8Array {
  const out = Buffer.allocUnsafe(lines.length);
  let at = 0;
  for (let end = lines.length; end > 0; ) {
    const start = end < 2 ? 0 : lines.lastIndexOf(lineFeed, end - 2) + 1;
    out.set(lines.subarray(start, end), at);
    at += end - start;
    end = start;
  }
  return out;
}
