import { type Data, Field, makeData, RecordBatch, Schema, Struct } from "apache-arrow";
import { isValid, RawStrings, rawVector } from "../../duckdb/raw-vector.ts";
import type { RowChunk } from "../../duckdb/whole-stream.ts";
import { RunvaultError } from "../../model/error.ts";
import type { ResultColumn } from "../query/query.ts";
import { textCell } from "../render/cell.ts";
import { type ArrowColumn, arrowColumn } from "./arrow-type.ts";
import type { ColumnSpan } from "./string-pieces.ts";

/** Rows of a record batch: large enough that its overhead does not count, small enough to hold several. */
const batchRows = 65_536;
/** A column of strings ends the batch sooner; far from the 2^31 bytes where Arrow's offsets end. */
const batchBytes = 32 * 1024 * 1024;

/** The Arrow schema of an answer. Columns of the same name get _2, _3, …, for readers that go by name. */
export function arrowSchema(columns: readonly ResultColumn[]): Schema {
  const names = new Set<string>();
  return new Schema(
    columns.map(({ name, type }) => {
      let free = name;
      for (let n = 2; names.has(free); n++) free = `${name}_${n}`;
      names.add(free);
      return new Field(free, arrowColumn(type).type, true);
    }),
  );
}

/**
 * The rows of chunks as record batches of bounded size, copied as bytes: no row becomes an object. At least one batch,
 * which may be empty. Throws `value_out_of_range` for a HUGEINT beyond 38 digits.
 */
export async function* arrowBatches(
  columns: readonly ResultColumn[],
  schema: Schema,
  spans: readonly ColumnSpan[],
  chunks: AsyncIterable<RowChunk>,
): AsyncGenerator<RecordBatch> {
  const fresh = (former?: readonly ColumnBuilder[]) =>
    columns.map(({ name, type }, index) => new ColumnBuilder(name, arrowColumn(type), former?.[index]));
  const finish = (builders: readonly ColumnBuilder[], rows: number) =>
    new RecordBatch(
      schema,
      makeData({
        type: new Struct(schema.fields),
        length: rows,
        nullCount: 0,
        children: builders.map((builder) => builder.finish(rows)),
      }),
    );
  let builders = fresh();
  let held = 0;
  let batches = 0;
  for await (const { chunk, rows } of chunks) {
    let largest = 0;
    for (const [index, builder] of builders.entries()) {
      largest = Math.max(largest, builder.append({ chunk, rows }, spans[index]!, held));
    }
    held += rows;
    if (held < batchRows && largest < batchBytes) continue;
    batches++;
    yield finish(builders, held);
    builders = fresh(builders);
    held = 0;
  }
  if (held > 0 || batches === 0) yield finish(builders, held);
}

/** One column of the batch that is being filled. */
class ColumnBuilder {
  readonly #name: string;
  readonly #column: ArrowColumn;
  #values: Uint8Array;
  #offsets = new Int32Array(0);
  #bytes = 0;
  #nulls = 0;
  #validity: Uint8Array | null = null;

  /** `former` is the column in the previous batch: this one will need about as much room. */
  constructor(name: string, column: ArrowColumn, former?: ColumnBuilder) {
    this.#name = name;
    this.#column = column;
    this.#values = new Uint8Array(former === undefined ? 0 : former.#values.byteLength);
    if (column.layout === "bytes" || column.layout === "text") {
      this.#offsets = new Int32Array(former === undefined ? 1 : former.#offsets.length);
    }
  }

  /** Appends a chunk's column after the `held` rows so far. Returns the total bytes of its strings. */
  append({ chunk, rows }: RowChunk, { first, count }: ColumnSpan, held: number): number {
    switch (this.#column.layout) {
      case "bytes":
        this.#appendStrings(
          Array.from({ length: count }, (_, piece) => new RawStrings(chunk, first + piece)),
          rows,
          held,
        );
        break;
      case "text":
        this.#appendText(chunk.getColumnVector(first), rows, held);
        break;
      default: {
        const { data, validity } = rawVector(chunk, first, this.#column.width);
        this.#appendValidity(validity, rows, held);
        this.#appendFixed(data, validity, rows, held);
      }
    }
    return this.#bytes;
  }

  finish(rows: number): Data {
    const { type, layout } = this.#column;
    const valueOffsets = this.#offsets.subarray(0, rows + 1);
    const values = {
      data: layout === "bytes" || layout === "text" ? this.#values.subarray(0, this.#bytes) : this.#values,
      ...(valueOffsets.length > 0 ? { valueOffsets } : {}),
    };
    // makeData's types need each type written out
    return makeData({
      type,
      length: rows,
      nullCount: this.#nulls,
      nullBitmap: this.#validity,
      ...values,
    } as never);
  }

  #appendFixed(data: Uint8Array, validity: Uint8Array | null, rows: number, held: number): void {
    const { layout, width } = this.#column;
    if (layout === "bits") {
      this.#values = grown(this.#values, (held + rows + 7) >> 3);
      for (let row = 0; row < rows; row++) {
        if (data[row] !== 0) this.#values[(held + row) >> 3]! |= 1 << ((held + row) & 7);
      }
      return;
    }
    if (layout === "widened") {
      this.#values = grown(this.#values, (held + rows) * 16);
      widen(data, width, rows, new Int32Array(this.#values.buffer, held * 16, rows * 4));
      return;
    }
    if (layout === "hugeint") this.#checkHugeints(data, validity, rows);
    this.#values = grown(this.#values, (held + rows) * width);
    this.#values.set(data.subarray(0, rows * width), held * width);
  }

  #appendStrings(pieces: readonly RawStrings[], rows: number, held: number): void {
    this.#appendValidity(pieces[0]!.validity, rows, held);
    const offsets = this.#roomForOffsets(held + rows);
    let end = this.#bytes;
    for (let row = 0; row < rows; row++) {
      for (const piece of pieces) end += piece.length(row);
      offsets[held + row + 1] = end;
    }
    this.#setEnd(end);
    for (let row = 0; row < rows; row++) {
      let at = offsets[held + row]!;
      for (const piece of pieces) at += piece.copy(row, this.#values, at);
    }
  }

  #appendText(vector: ReturnType<RowChunk["chunk"]["getColumnVector"]>, rows: number, held: number): void {
    const offsets = this.#roomForOffsets(held + rows);
    for (let row = 0; row < rows; row++) {
      const value = vector.getItem(row);
      const bytes = Buffer.from(textCell(value));
      const at = this.#bytes;
      this.#setEnd(at + bytes.byteLength);
      this.#values.set(bytes, at);
      offsets[held + row + 1] = this.#bytes;
      if (value === null) this.#setNull(held + row);
      else this.#setValid(held + row);
    }
  }

  #roomForOffsets(rows: number): Int32Array {
    const needed = (rows + 1) * 4;
    const bytes = new Uint8Array(this.#offsets.buffer, 0, this.#offsets.byteLength);
    this.#offsets = new Int32Array(grown(bytes, needed).buffer);
    return this.#offsets;
  }

  #setEnd(end: number): void {
    // one chunk of huge strings may do it; a batch ends long before
    if (end > 0x7fff_ffff) {
      throw new RunvaultError(
        "value_out_of_range",
        `column ${this.#name} has more than 2 GiB in a few thousand rows`,
        { hint: "Omit the column, or choose another --format." },
      );
    }
    this.#values = grown(this.#values, end);
    this.#bytes = end;
  }

  #appendValidity(validity: Uint8Array | null, rows: number, held: number): void {
    if (validity === null && this.#validity === null) return;
    for (let row = 0; row < rows; row++) {
      if (isValid(validity, row)) this.#setValid(held + row);
      else this.#setNull(held + row);
    }
  }

  #setValid(row: number): void {
    if (this.#validity === null) return;
    this.#validity = grown(this.#validity, (row >> 3) + 1);
    this.#validity[row >> 3]! |= 1 << (row & 7);
  }

  #setNull(row: number): void {
    this.#nulls++;
    if (this.#validity === null) {
      this.#validity = grown(new Uint8Array(0), (row >> 3) + 1);
      for (let before = 0; before < row; before++) this.#setValid(before);
    }
    this.#validity = grown(this.#validity, (row >> 3) + 1);
  }

  #checkHugeints(data: Uint8Array, validity: Uint8Array | null, rows: number): void {
    const words = new BigInt64Array(data.buffer, data.byteOffset, rows * 2);
    for (let row = 0; row < rows; row++) {
      const value = (words[row * 2 + 1]! << 64n) | BigInt.asUintN(64, words[row * 2]!);
      if ((value <= -beyond || value >= beyond) && isValid(validity, row)) {
        throw new RunvaultError(
          "value_out_of_range",
          `column ${this.#name}: ${value} has more than 38 digits`,
          {
            hint: "Cast the column to VARCHAR or DOUBLE.",
          },
        );
      }
    }
  }
}

const beyond = 10n ** 38n;

/** Little-endian two's complement of 2, 4 or 8 bytes as sixteen. */
function widen(data: Uint8Array, width: number, rows: number, to: Int32Array): void {
  const from =
    width === 2
      ? new Int16Array(data.buffer, data.byteOffset, rows)
      : new Int32Array(data.buffer, data.byteOffset, (rows * width) >> 2);
  const [step, high] = width === 8 ? [2, 1] : [1, 0];
  for (let row = 0; row < rows; row++) {
    const sign = from[row * step + high]! >> 31;
    to[row * 4] = from[row * step]!;
    to[row * 4 + 1] = width === 8 ? from[row * step + 1]! : sign;
    to[row * 4 + 2] = sign;
    to[row * 4 + 3] = sign;
  }
}

/** Copies the bytes to an array with room for `size`: doubled, so that filling it copies little. */
function grown(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  if (bytes.byteLength >= size) return bytes as Uint8Array<ArrayBuffer>;
  const larger = new Uint8Array(Math.max(1024, size, bytes.byteLength * 2));
  larger.set(bytes);
  return larger;
}
