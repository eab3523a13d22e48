import type { DuckDBDataChunk } from "@duckdb/node-api";
import bindings from "@duckdb/node-bindings";

/**
 * A chunk's column as raw bytes, without making values. Both parts are copies made by the bindings. Little-endian on
 * every platform of DuckDB.
 */
export interface RawVector {
  /** `width` bytes per row. */
  readonly data: Uint8Array;
  /** One bit per row, lowest first, set for a value; null if no row is NULL. */
  readonly validity: Uint8Array | null;
}

/** The bytes of a column whose values take `width` bytes each. */
export function rawVector(chunk: DuckDBDataChunk, column: number, width: number): RawVector {
  const vector = bindings.data_chunk_get_vector(chunk.chunk, column);
  const rows = chunk.rowCount;
  return {
    data: bindings.vector_get_data(vector, rows * width),
    // DuckDB keeps it in words of 64 bits
    validity: bindings.vector_get_validity(vector, Math.ceil(rows / 64) * 8),
  };
}

/** Whether a row has a value. */
export function isValid(validity: Uint8Array | null, row: number): boolean {
  return validity === null || ((validity[row >> 3]! >> (row & 7)) & 1) === 1;
}

/** Bytes of DuckDB's string type in a vector, and how many of them may hold a string itself. */
export const stringWidth = 16;
export const inlineBytes = 12;

/**
 * The strings (or blobs) of a column, as bytes. A string of up to twelve bytes is in the vector itself, after its
 * length; for a longer one the vector has an address, and reading from there costs a call into the bindings, about a
 * microsecond. Rows with the same address, as from Parquet dictionaries, are fetched once.
 */
export class RawStrings {
  readonly validity: Uint8Array | null;
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  /** Kept, because it owns the memory at the addresses. */
  readonly chunk: DuckDBDataChunk;
  readonly #fetched = new Map<number, Uint8Array>();

  constructor(chunk: DuckDBDataChunk, column: number) {
    const { data, validity } = rawVector(chunk, column, stringWidth);
    this.chunk = chunk;
    this.validity = validity;
    this.#bytes = data;
    this.#words = new Uint32Array(data.buffer, data.byteOffset, data.byteLength >> 2);
  }

  /** Length in bytes; 0 for NULL. */
  length(row: number): number {
    return isValid(this.validity, row) ? this.#words[row * 4]! : 0;
  }

  /** Writes a row's bytes; returns how many. */
  copy(row: number, to: Uint8Array, at: number): number {
    const length = this.length(row);
    const start = row * stringWidth + 4;
    if (length > inlineBytes) to.set(this.#fetch(row, length), at);
    // for so few bytes a loop is faster than copying
    else for (let i = 0; i < length; i++) to[at + i] = this.#bytes[start + i]!;
    return length;
  }

  /**
   * The bytes of the first `rows` strings, concatenated. DuckDB writes a chunk's strings side by side, so adjacent ones
   * are fetched together.
   */
  joined(rows: number): Uint8Array {
    const pieces: Uint8Array[] = [];
    for (let row = 0; row < rows; ) {
      const first = row;
      let bytes = this.length(row++);
      if (bytes <= inlineBytes) {
        const start = first * stringWidth + 4;
        pieces.push(this.#bytes.subarray(start, start + bytes));
        continue;
      }
      const address = this.#address(first);
      while (row < rows && this.length(row) > inlineBytes && this.#address(row) === address + bytes) {
        bytes += this.length(row++);
      }
      pieces.push(this.#read(first, bytes));
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }

  /** The address of a string longer than `inlineBytes`. Addresses have 48 bits, which fit into a double. */
  #address(row: number): number {
    return this.#words[row * 4 + 2]! + this.#words[row * 4 + 3]! * 2 ** 32;
  }

  /** Bytes from the address of a row's string on. */
  #read(row: number, bytes: number): Uint8Array {
    const buffer = this.#bytes.buffer as ArrayBuffer;
    return bindings.get_data_from_pointer(buffer, this.#bytes.byteOffset + row * stringWidth + 8, bytes);
  }

  #fetch(row: number, length: number): Uint8Array {
    const address = this.#address(row);
    const known = this.#fetched.get(address);
    if (known !== undefined && known.byteLength === length) return known;
    const bytes = this.#read(row, length);
    if (this.#fetched.size < mostKept) this.#fetched.set(address, bytes);
    return bytes;
  }
}

/** Strings remembered per column and chunk: more than most chunks of a dictionary column have. */
const mostKept = 64;
