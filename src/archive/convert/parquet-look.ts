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

/** A look by DuckDB into a Parquet file that was just written, by whatever wrote it. */
export class ParquetLook {
  readonly #connection: DuckDBConnection;

  constructor(connection: DuckDBConnection) {
    this.#connection = connection;
  }

  async rows(file: string): Promise<number> {
    const row = await this.#firstRow<[bigint]>(`SELECT count(*) FROM ${parquetRows([file])}`);
    return Number(row![0]);
  }

  /**
   * A row that stands before its predecessor in key order; where there is none, one that has its predecessor's key.
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

  /** Keys of the first and the last of so many rows; undefined where there are none. */
  async endKeys(
    file: string,
    rows: number,
  ): Promise<{ readonly first: RowKey | undefined; readonly last: RowKey | undefined }> {
    const key = async (offset: number): Promise<RowKey | undefined> => {
      const row = await this.#firstRow<[bigint, bigint]>(
        `SELECT epoch_ns(ts_event), seq FROM ${parquetRows([file])} LIMIT 1 OFFSET ${offset}`,
      );
      return row && { ts: row[0], seq: row[1] };
    };
    if (rows === 0) return { first: undefined, last: undefined };
    return { first: await key(0), last: await key(rows - 1) };
  }

  rowHash(table: Table, file: string): Promise<RowHash> {
    return rowHashWithin(this.#connection, table, [file]);
  }

  async #firstRow<Row>(sql: string): Promise<Row | undefined> {
    const reader = await this.#connection.runAndReadAll(sql);
    return reader.getRows()[0] as Row | undefined;
  }
}
