import {
  BIGINT,
  BOOLEAN,
  DECIMAL,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  type DuckDBType,
  INTEGER,
  TIMESTAMP_NS,
  UBIGINT,
} from "@duckdb/node-api";
import bindings from "@duckdb/node-bindings";
import { RunvaultError } from "../model/error.ts";
import type { DecimalType } from "../model/profile/exact-types.ts";
import { decimalSql } from "./exact-vector.ts";
import { identifier } from "./sql.ts";

/** A written table's column type; NULL for a null value. */
export type WrittenType = "INTEGER" | "BIGINT" | "UBIGINT" | "TIMESTAMP_NS" | "BOOLEAN" | DecimalType;

/** Rows of a DuckDB vector. */
const chunkRows = 2048;

/**
 * Writes rows into a new table, a vector of each column at a time: rows are not objects, and a value costs an array
 * store. `set` each column of a row, then `endRow`; `close` at the end.
 */
export class TableWriter {
  readonly #appender: DuckDBAppender;
  readonly #types: readonly DuckDBType[];
  readonly #columns: readonly Column[];
  #rows = 0;

  private constructor(appender: DuckDBAppender, columns: readonly WrittenType[]) {
    this.#appender = appender;
    this.#types = columns.map(duckDBTypeOf);
    this.#columns = columns.map((type) => new Column(type));
  }

  /** Creates the table, replacing an existing one. */
  static async open(
    connection: DuckDBConnection,
    schema: string,
    table: string,
    columns: Readonly<Record<string, WrittenType>>,
  ): Promise<TableWriter> {
    const typed = Object.entries(columns).map(([name, type]) => `${identifier(name)} ${columnSqlType(type)}`);
    const place = `${identifier(schema)}.${identifier(table)}`;
    await connection.run(`CREATE OR REPLACE TABLE ${place} (${typed.join(", ")})`);
    return new TableWriter(await connection.createAppender(table, schema), Object.values(columns));
  }

  /** Throws `value_out_of_range` for a decimal of more digits than its column has. */
  set(column: number, value: bigint | number | boolean | null): void {
    this.#columns[column]!.set(this.#rows, value);
  }

  endRow(): void {
    if (++this.#rows === chunkRows) this.#flush();
  }

  close(): void {
    this.#flush();
    this.#appender.closeSync();
  }

  #flush(): void {
    if (this.#rows === 0) return;
    const chunk = DuckDBDataChunk.create(this.#types, this.#rows);
    for (const [index, column] of this.#columns.entries()) {
      column.flush(bindings.data_chunk_get_vector(chunk.chunk, index), this.#rows);
    }
    this.#appender.appendDataChunk(chunk);
    this.#rows = 0;
  }
}

/** A vector of a column that is being filled. */
class Column {
  readonly #type: WrittenType;
  readonly #values: BigInt64Array | Int32Array | Uint8Array;
  readonly #validity = new BigUint64Array(chunkRows / 64);
  readonly #bits = new Uint8Array(this.#validity.buffer);
  readonly #bytes: number;
  readonly #beyond: bigint;
  #hasNulls = false;

  constructor(type: WrittenType) {
    this.#type = type;
    this.#bytes = widthOf(type);
    const { length, bytes } = { length: chunkRows, bytes: this.#bytes };
    this.#values =
      bytes === 1
        ? new Uint8Array(length)
        : bytes === 4
          ? new Int32Array(length)
          : new BigInt64Array((length * bytes) / 8);
    this.#beyond = typeof type === "string" ? 0n : 10n ** BigInt(type.precision);
    this.#bits.fill(0xff);
  }

  set(row: number, value: bigint | number | boolean | null): void {
    if (value === null) {
      this.#bits[row >> 3]! &= ~(1 << (row & 7));
      this.#hasNulls = true;
    } else if (typeof value !== "bigint") {
      this.#values[row] = Number(value);
    } else if (this.#beyond > 0n && (value >= this.#beyond || -value >= this.#beyond)) {
      throw new RunvaultError(
        "value_out_of_range",
        `a value has more digits than ${columnSqlType(this.#type)} holds`,
      );
    } else if (this.#bytes === 16) {
      this.#values[row * 2] = BigInt.asIntN(64, value);
      this.#values[row * 2 + 1] = value >> 64n;
    } else {
      this.#values[row] = value;
    }
  }

  flush(vector: ReturnType<typeof bindings.data_chunk_get_vector>, rows: number): void {
    bindings.copy_data_to_vector(vector, 0, this.#values.buffer as ArrayBuffer, 0, rows * this.#bytes);
    if (!this.#hasNulls) return;
    bindings.vector_ensure_validity_writable(vector);
    bindings.copy_data_to_vector_validity(vector, 0, this.#validity.buffer, 0, this.#validity.byteLength);
    this.#bits.fill(0xff);
    this.#hasNulls = false;
  }
}

/** A type in SQL. */
export function columnSqlType(type: WrittenType | "VARCHAR"): string {
  return typeof type === "string" ? type : decimalSql(type);
}

function duckDBTypeOf(type: WrittenType): DuckDBType {
  return typeof type === "string" ? plainTypes[type] : DECIMAL(type.precision, type.scale);
}

const plainTypes = { INTEGER, BIGINT, UBIGINT, TIMESTAMP_NS, BOOLEAN };

/** Bytes of a value in a vector. */
function widthOf(type: WrittenType): number {
  if (typeof type !== "string") return type.precision > 18 ? 16 : 8;
  return type === "BOOLEAN" ? 1 : type === "INTEGER" ? 4 : 8;
}
