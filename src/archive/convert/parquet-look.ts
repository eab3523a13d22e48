import type { DuckDBConnection } from "@duckdb/node-api";
import { rowHashWithin } from "../../duckdb/row-hash-within.ts";
import { identifier, parquetRows } from "../../duckdb/sql.ts";
import type { Table } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { RowHash } from "../../row/row-hash.ts";

/** The key of a row. */
export interface RowKey {
  readonly ts: Nanoseconds;
  readonly seq: bigint;
}

export interface OrderFault extends RowKey {
  readonly kind: "disorder" | "duplicate";
}

export interface ParquetExtent {
  readonly rows: number;
  readonly first: RowKey | undefined;
  readonly last: RowKey | undefined;
}

/** A check by DuckDB of a Parquet file that was just written, whatever wrote it. */
export class ParquetLook {
  readonly #connection: DuckDBConnection;

  constructor(connection: DuckDBConnection) {
    this.#connection = connection;
  }

  /**
   * A row that comes before its predecessor in key order; if there is none, one with its predecessor's key.
   */
  async orderFault(table: Table, file: string): Promise<OrderFault | undefined> {
    const keys = table.key.map(identifier);
    const before = keys.map((key, index) => `lag(${key}) OVER () AS b${index}`);
    const equal = (count: number) => keys.slice(0, count).map((key, index) => `${key} = b${index}`);
    const disorder = keys
      .map((key, index) => `(${[...equal(index), `${key} < b${index}`].join(" AND ")})`)
      .join(" OR ");
    const row = await this.#firstRow<[boolean, bigint, bigint]>(
      `SELECT ${disorder} AS disorder, epoch_ns(ts_event), seq
     FROM (SELECT ${[...keys, ...before].join(", ")} FROM ${parquetRows([file])})
     WHERE ${disorder} OR (${equal(keys.length).join(" AND ")}) ORDER BY disorder DESC LIMIT 1`,
    );
    return row && { kind: row[0] ? "disorder" : "duplicate", ts: row[1], seq: row[2] };
  }

  /**
   * How many rows a file has and, if that is the expected number, the keys of the first and the last; undefined if
   * there are none. It is one statement, because each statement opens the file again.
   */
  async extent(file: string, expected: number): Promise<ParquetExtent> {
    const numbered = parquetRows([file], ", file_row_number = true");
    const reader = await this.#connection.runAndReadAll(
      `SELECT (SELECT count(*) FROM ${parquetRows([file])}), epoch_ns(ts_event), seq
     FROM (SELECT 0) LEFT JOIN ${numbered} ON file_row_number IN (0, ${Math.max(0, expected - 1)}) ORDER BY file_row_number`,
    );
    const found = reader.getRows() as [bigint, bigint | null, bigint | null][];
    const keys = found.flatMap(([, ts, seq]) => (ts === null || seq === null ? [] : [{ ts, seq }]));
    return { rows: Number(found[0]![0]), first: keys[0], last: keys.at(-1) };
  }

  rowHash(table: Table, file: string): Promise<RowHash> {
    return rowHashWithin(this.#connection, table, [file]);
  }

  async #firstRow<Row>(sql: string): Promise<Row | undefined> {
    const reader = await this.#connection.runAndReadAll(sql);
    return reader.getRows()[0] as Row | undefined;
  }
}
