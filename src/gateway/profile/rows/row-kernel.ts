import { normaliseRowsModule } from "../../../gen/wasm/normalise-rows.ts";
import { shortestDouble } from "./column-text.ts";
import { type KernelProgram, programStart } from "./kernel-program.ts";

const pageBytes = 64 * 1024;
/** Bytes of text read at a time, and room for the result. */
const usualOutBytes = 512 * 1024;
/** The kernel reads and writes up to sixteen bytes beyond its buffers. */
const slack = 64;

/** Why the kernel stopped. */
export const kernelStop = { done: 0, full: 1, careful: 2, newField: 3 } as const;
export type KernelStop = (typeof kernelStop)[keyof typeof kernelStop];

interface Exports {
  readonly memory: WebAssembly.Memory;
  begin(header: number): void;
  run(at: number, end: number, out: number, limit: number): KernelStop;
  lineStart(): number;
  lineEnd(): number;
  outEnd(): number;
}

/** Engine types that neither TypeScript's nor Node's declarations have. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, (...words: number[]) => number>>);
    readonly exports: object;
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
}

let compiled: WebAssembly.Module | undefined;

/**
 * One instance of the compiled inner loop with its memory: takes text, returns canonical lines. Serves one answer at a
 * time.
 */
export class RowKernel {
  readonly #program: KernelProgram;
  readonly #exports: Exports;
  #bytes: Buffer;
  /** Canonical lines are from `#out` to `#outEnd`; text is from `#at` to `#end`. */
  readonly #out: number;
  #outEnd: number;
  #outBytes = usualOutBytes;
  #at: number;
  #end: number;
  /** The end of the last whole line of the text. */
  #whole: number;

  constructor(program: KernelProgram) {
    this.#program = program;
    compiled ??= new WebAssembly.Module(Buffer.from(normaliseRowsModule, "base64"));
    const imports = { "normalise-rows": { rewriteDouble: this.#rewriteDouble.bind(this) } };
    this.#exports = new WebAssembly.Instance(compiled, imports).exports as unknown as Exports;
    this.#out = programStart + program.bytes.byteLength;
    this.#outEnd = this.#out;
    this.#at = this.#end = this.#whole = this.#textStart;
    this.#bytes = Buffer.from(this.#exports.memory.buffer);
    this.#reserve(this.#at);
    this.#bytes.set(program.bytes, programStart);
    this.#exports.begin(programStart);
  }

  get memoryBytes(): number {
    return this.#bytes.byteLength;
  }

  /** Bytes of text taken but not yet processed. */
  get pendingBytes(): number {
    return this.#end - this.#at;
  }

  get hasWholeLine(): boolean {
    return this.#whole > this.#at;
  }

  reset(): void {
    this.#outEnd = this.#out;
    this.#at = this.#end = this.#whole = this.#textStart;
  }

  take(piece: Uint8Array): void {
    if (this.#at > this.#textStart) {
      this.#bytes.copyWithin(this.#textStart, this.#at, this.#end);
      this.#end -= this.#at - this.#textStart;
      this.#at = this.#whole = this.#textStart;
    }
    this.#reserve(this.#end + piece.byteLength);
    this.#bytes.set(piece, this.#end);
    const lineEnd = piece.lastIndexOf(0x0a);
    if (lineEnd >= 0) this.#whole = this.#end + lineEnd + 1;
    this.#end += piece.byteLength;
  }

  /** The first bytes of the text. */
  peek(bytes: number): Uint8Array {
    return this.#bytes.subarray(this.#at, Math.min(this.#at + bytes, this.#end));
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  /**
   * Makes whole lines canonical until one needs attention: `full` needs more room for output; `careful` must be taken
   * with `line`; `newField` has a field that no line had before, see `line`; `done` means that no whole line is left.
   */
  run(): KernelStop {
    if (this.#whole <= this.#at) return kernelStop.done;
    const stop = this.#exports.run(this.#at, this.#whole, this.#outEnd, this.#out + this.#outBytes);
    this.#outEnd = this.#exports.outEnd();
    const isLine = stop === kernelStop.careful || stop === kernelStop.newField;
    this.#at = isLine ? this.#exports.lineEnd() + 1 : this.#exports.lineStart();
    return stop;
  }

  /** The line at which `run` stopped, without its line end; valid until the next call. */
  line(): Buffer {
    return this.#bytes.subarray(this.#exports.lineStart(), this.#exports.lineEnd());
  }

  /** Appends a finished line; false if there is no room. */
  put(line: Uint8Array): boolean {
    if (this.#outEnd + line.byteLength > this.#out + this.#outBytes) return false;
    this.#bytes.set(line, this.#outEnd);
    this.#outEnd += line.byteLength;
    return true;
  }

  /** The finished lines, which now belong to the caller; undefined if there are none. */
  flush(): Buffer | undefined {
    const length = this.#outEnd - this.#out;
    if (length === 0) return undefined;
    const lines = Buffer.allocUnsafeSlow(length);
    this.#bytes.copy(lines, 0, this.#out, this.#outEnd);
    this.#outEnd = this.#out;
    return lines;
  }

  /** Makes room for the next line's result, if nothing is left to flush. */
  widen(): void {
    const { fixedBytes, uses } = this.#program;
    const length = this.#exports.lineEnd() - this.#exports.lineStart();
    const before = this.#textStart;
    this.#outBytes = Math.max(this.#outBytes, fixedBytes + length * uses);
    const move = this.#textStart - before;
    this.#reserve(this.#end + move);
    this.#bytes.copyWithin(this.#at + move, this.#at, this.#end);
    this.#at += move;
    this.#end += move;
    this.#whole += move;
  }

  /** The text after the last line end. */
  rest(): Buffer {
    return this.#bytes.subarray(this.#at, this.#end);
  }

  get #textStart(): number {
    return this.#out + this.#outBytes + slack;
  }

  #reserve(end: number): void {
    const { memory } = this.#exports;
    const missing = end + slack - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / pageBytes));
    // when memory grows, its buffer is replaced
    if (this.#bytes.buffer !== memory.buffer) this.#bytes = Buffer.from(memory.buffer);
  }

  #rewriteDouble(at: number, length: number, out: number): number {
    const text = this.#bytes.toString("latin1", at, at + length);
    const isSpecial = text === "NaN" || text === "Infinity" || text === "-Infinity";
    const double = isSpecial ? `"${text}"` : shortestDouble(text);
    if (double === undefined) return 0;
    if (double === text) return -1;
    for (let i = 0; i < double.length; i++) this.#bytes[out + i] = double.charCodeAt(i);
    return double.length;
  }
}
