import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { canonicalLineSql } from "../src/archive/canonical-sql.ts";
import {
  type ConvertInput,
  type ConvertResult,
  convertBucket,
  type SegmentInput,
} from "../src/archive/convert.ts";
import { defaultExactTypes } from "../src/archive/convert-types.ts";
import { type OpenDuckDB, openDuckDB } from "../src/archive/duckdb.ts";
import { fileList } from "../src/archive/sql.ts";
import { canonicalLine, type Row } from "../src/model/line.ts";
import type { Column, Table } from "../src/model/table.ts";

export const instanceId = "inst";
export const runId = "run";

/** A value for every column, so that a case names only what it is about. */
export function sampleRow(table: Table, values: Row = {}): Row {
  const row = Object.fromEntries(table.columns.map((column) => [column.name, sampleValue(column)]));
  return { ...row, run_id: runId, instance_id: instanceId, ...values };
}

function sampleValue({ kind, name }: Column): string | number {
  switch (kind) {
    case "uint64":
      return "7";
    case "int64":
      return "60000000000";
    case "timestamp":
      return "1640995260000000001";
    case "uint32":
      return 3;
    case "double":
      return 0.25;
    case "exact":
      return "1.5";
    case "string":
      return `a ${name}`;
  }
}

export function sampleLine(table: Table, values: Row = {}): string {
  return canonicalLine(table, sampleRow(table, values));
}

/** A folder with a DuckDB, where segments are written and converted. Closed and removed at the end. */
export class ConvertFixture implements AsyncDisposable {
  readonly dir: string;
  readonly db: OpenDuckDB;
  #made = 0;

  private constructor(dir: string, db: OpenDuckDB) {
    this.dir = dir;
    this.db = db;
  }

  static async open(): Promise<ConvertFixture> {
    const dir = await mkdtemp(join(tmpdir(), "runvault-convert-"));
    return new ConvertFixture(
      dir,
      await openDuckDB({ memoryLimitMb: 256, threads: 2, tempDirectory: join(dir, "spill") }),
    );
  }

  /** A segment whose text is given; `rows` is the number of its line ends unless given. */
  async segment(text: string | Buffer, more: Partial<SegmentInput> = {}): Promise<SegmentInput> {
    const bytes = Buffer.from(text);
    const file = join(this.dir, `seg-${this.#made++}.ndjson.zst`);
    const params = {
      [constants.ZSTD_c_compressionLevel]: 1,
      [constants.ZSTD_c_contentSizeFlag]: 1,
      [constants.ZSTD_c_checksumFlag]: 1,
    };
    await writeFile(file, zstdCompressSync(bytes, { params }));
    const lines = bytes.toString("latin1").split("\n");
    return {
      file,
      rows: lines.length - 1 + (lines.at(-1) === "" ? 0 : 1),
      bytes: bytes.length,
      longestLine: Math.max(...lines.map((line) => line.length)),
      sorted: true,
      ...more,
    };
  }

  async convert(
    table: Table,
    segments: readonly SegmentInput[],
    more: Partial<ConvertInput> = {},
  ): Promise<ConvertResult & { out: string }> {
    const out = join(this.dir, `out-${this.#made++}.parquet`);
    const input = {
      table,
      instanceId,
      runId,
      segments,
      exactTypes: defaultExactTypes(table),
      out,
      codec: "zstd",
    } as const;
    return { ...(await convertBucket(this.db.connection, { ...input, ...more })), out };
  }

  /** Rows of a query, values as JSON has them. */
  async query(sql: string): Promise<unknown[][]> {
    return (await this.db.connection.runAndReadAll(sql)).getRowsJson();
  }

  /** The canonical lines of a Parquet file, rendered from its typed columns. */
  async lines(table: Table, file: string): Promise<string[]> {
    const rows = await this.query(`SELECT ${canonicalLineSql(table)} FROM read_parquet(${fileList([file])})`);
    return rows.map((row) => String(row[0]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.db.close();
    await rm(this.dir, { recursive: true, force: true });
  }
}
