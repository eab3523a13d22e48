import { isUtf8 } from "node:buffer";
import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { Turns } from "../../../model/turns.ts";
import { badRowLine } from "../../../row/bad-row.ts";
import { lineTooLong, longestLineBytes } from "../../../row/line.ts";
import { isBlank } from "../../../row/line-object.ts";
import { type CarefulRow, normaliseCarefully } from "./careful-row.ts";
import { type KernelProgram, kernelProgram } from "./kernel-program.ts";
import { kernelStop, RowKernel } from "./row-kernel.ts";
import { planRows, type RowPlan } from "./row-plan.ts";

export interface NormaliserOptions {
  /** Called once for each unknown field, when it first occurs. */
  readonly onUnknownField?: ((path: readonly string[]) => void) | undefined;
}

const pieceBytes = 256 * 1024;
/** The most idle kernels to keep, and the largest memory of one, because a long line makes it grow. */
const idleKernels = 2;
const idleKernelBytes = 4 * 1024 * 1024;

/**
 * Makes the rows of one table and run canonical as they arrive, from bytes to bytes: usual rows in WebAssembly, others
 * on the slow path.
 *
 * A row that cannot be made canonical is replaced by a bad row's line (see bad-row.ts). Lines that are blank or
 * not UTF-8 stay unchanged: the reader of lines deals with them.
 */
export class RowNormaliser {
  readonly #plan: RowPlan;
  readonly #program: KernelProgram;
  readonly #onUnknownField: NormaliserOptions["onUnknownField"];
  readonly #told = new Set<string>();
  readonly #idle: RowKernel[] = [];

  /** Throws `invalid_argument` if the map does not fit the table. */
  constructor(table: Table, map: RowMap, run: RunRef, options: NormaliserOptions = {}) {
    this.#plan = planRows(table, map, run);
    this.#program = kernelProgram(this.#plan);
    this.#onUnknownField = options.onUnknownField;
  }

  /**
   * The canonical lines of one answer, whose chunks may be cut anywhere. A last line without a line end counts as a row
   * if it is a complete object; otherwise it is passed on unchanged, so that the truncation shows. Throws
   * `malformed_row` for an unknown field if the map freezes fields, and `line_too_long`.
   */
  async *over(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    const kernel = this.#idle.pop() ?? new RowKernel(this.#program);
    const turns = new Turns();
    let atStart = true;
    try {
      for await (const chunk of chunks) {
        for (let start = 0; start < chunk.byteLength; start += pieceBytes) {
          const piece = chunk.byteLength <= pieceBytes ? chunk : chunk.subarray(start, start + pieceBytes);
          kernel.take(piece);
          if (!kernel.hasWholeLine) {
            refuseTooLong(kernel.pendingBytes);
            continue;
          }
          if (atStart) skipByteOrderMark(kernel);
          atStart = false;
          for (let stop = kernel.run(); stop !== kernelStop.done; stop = kernel.run()) {
            switch (stop) {
              case kernelStop.full: {
                const lines = kernel.flush();
                if (lines === undefined) kernel.widen();
                else yield lines;
                break;
              }
              case kernelStop.careful: {
                const line = this.#carefulLine(kernel.line());
                if (!kernel.put(line)) {
                  const lines = kernel.flush();
                  if (lines !== undefined) yield lines;
                  if (!kernel.put(line)) yield line;
                }
                if (turns.isDue(carefulWork + line.byteLength)) await turns.next();
                break;
              }
              case kernelStop.newField:
                this.#tell(normaliseCarefully(this.#plan, kernel.line().toString()));
                break;
            }
          }
          const lines = kernel.flush();
          if (lines !== undefined) yield lines;
          refuseTooLong(kernel.pendingBytes);
          if (turns.isDue(piece.byteLength)) await turns.next();
        }
      }
      if (atStart) skipByteOrderMark(kernel);
      if (kernel.pendingBytes > 0) yield this.#lastLine(Buffer.from(kernel.rest()));
    } finally {
      kernel.reset();
      if (this.#idle.length < idleKernels && kernel.memoryBytes <= idleKernelBytes) this.#idle.push(kernel);
    }
  }

  /** The canonical line of one row, which may span several lines, or a bad row's line; with the line end. */
  row(bytes: Uint8Array): Buffer {
    const kernel = this.#idle.pop() ?? new RowKernel(this.#program);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    try {
      // to the kernel, a line end is the end of the row
      if (text.includes(0x0a)) return this.#carefulLine(text);
      kernel.take(text);
      kernel.take(lineFeed);
      let stop = kernel.run();
      if (stop === kernelStop.full) {
        kernel.widen();
        stop = kernel.run();
      }
      if (stop === kernelStop.careful) return this.#carefulLine(text);
      if (stop === kernelStop.newField) this.#tell(normaliseCarefully(this.#plan, text.toString()));
      return kernel.flush()!;
    } finally {
      kernel.reset();
      if (this.#idle.length < idleKernels && kernel.memoryBytes <= idleKernelBytes) this.#idle.push(kernel);
    }
  }

  #carefulLine(bytes: Buffer): Buffer {
    if (isBlank(bytes, 0, bytes.byteLength) || !isUtf8(bytes)) return Buffer.concat([bytes, lineFeed]);
    return Buffer.from(`${this.#textOf(normaliseCarefully(this.#plan, bytes.toString()))}\n`);
  }

  /** The rest of an answer after its last line end. */
  #lastLine(bytes: Buffer): Buffer {
    if (isBlank(bytes, 0, bytes.byteLength) || !isUtf8(bytes)) return bytes;
    const row = normaliseCarefully(this.#plan, bytes.toString());
    return row.kind === "bad" && row.isTorn ? bytes : Buffer.from(`${this.#textOf(row)}\n`);
  }

  #textOf(row: CarefulRow): string {
    if (row.kind === "bad") return badRowLine(row.row, row.ts);
    this.#tell(row);
    return row.line;
  }

  #tell(row: CarefulRow): void {
    if (row.kind === "bad" || this.#onUnknownField === undefined) return;
    for (const path of row.unknown) {
      const key = JSON.stringify(path);
      // a gateway that uses data as keys has new fields in each row
      if (this.#told.size >= mostTold || this.#told.has(key)) continue;
      this.#told.add(key);
      this.#onUnknownField(path);
    }
  }
}

const mostTold = 500;
const lineFeed = Buffer.from("\n");
/** The cost of a slow row besides its bytes, in bytes of a usual row. */
const carefulWork = 4096;

function skipByteOrderMark(kernel: RowKernel): void {
  const [a, b, c] = kernel.peek(3);
  if (a === 0xef && b === 0xbb && c === 0xbf) kernel.skip(3);
}

function refuseTooLong(bytes: number): void {
  if (bytes <= longestLineBytes) return;
  throw lineTooLong("line");
}
