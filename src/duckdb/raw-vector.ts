import type { DuckDBDataChunk } from "@duckdb/node-api";
import bindings from "@duckdb/node-bindings";

/**
 * A column of a chunk as its bytes: nothing becomes a value. Both parts are copies, made by the bindings.
 * Little-endian, as DuckDB has it on every machine it is built for.
 */
export interface RawVector {
  /** `width` bytes a row. */
  readonly data: Uint8Array;
  /** A bit a row, the lowest first, set where there is a value; null where no row is NULL. */
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

/** Bytes that DuckDB's string type takes in a vector, and how many of them may hold a string itself. */
export const stringWidth = 16;
export const inlineBytes = 12;

/**
 * The strings (or blobs) of a column, as bytes. A string of up to twelve bytes stands in the vector itself, behind its
 * length; of a longer one the vector has the address, and fetching what is there costs a call into the bindings, about
 * a microsecond. Rows of the same address, as Parquet's dictionaries give them, are fetched once.
 */
export class RawStrings {
  readonly validity: Uint8Array | null;
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  /** Held, because it holds what the addresses point to. */
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

  /** Writes a row's bytes; gives how many. */
  copy(row: number, to: Uint8Array, at: number): number {
    const length = this.length(row);
    const start = row * stringWidth + 4;
    if (length > inlineBytes) to.set(this.#fetch(row, length), at);
    // a loop beats a copy of the runtime's for so few bytes
    else for (let i = 0; i < length; i++) to[at + i] = this.#bytes[start + i]!;
    return length;
  }

  /**
   * The bytes of the first `rows` strings, one behind the other. DuckDB writes the strings that it makes for a chunk side
   * by side, and what lies side by side is fetched at once.
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

  /** Where a string longer than `inlineBytes` stands. Addresses have 48 bits: a double holds them. */
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

/** Strings remembered of one chunk's column: more than a dictionary column has in most chunks. */
const mostKept = 64;
