import { open, rm } from "node:fs/promises";
import type { Holding } from "../../archive/manifest/manifest.ts";
import type { RunJournal } from "../../archive/write/run-journal.ts";
import type { OpenDuckDB } from "../../duckdb/open-duckdb.ts";
import { RawStrings } from "../../duckdb/raw-vector.ts";
import { fileList, literal, parquetRows } from "../../duckdb/sql.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import { remapLines } from "../../gateway/profile/rows/remap-lines.ts";
import { RowNormaliser } from "../../gateway/profile/rows/row-normaliser.ts";
import { isIdentityMap } from "../../model/profile/identity-map.ts";
import type { RowMap } from "../../model/profile/row-map.ts";
import type { Table } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { badRowLine } from "../../row/bad-row.ts";
import { longestLineBytes } from "../../row/line.ts";

/** The rows of one holding, converted to another map and in their new order, as long as this is open. */
export class RemappedLines implements AsyncDisposable {
  readonly #duckdb: OpenDuckDB;
  readonly #file: string;
  /** Lines that are not UTF-8 and stay unchanged, before all others. */
  readonly unread: Buffer;
  /** The number of lines, including those that are not rows, but not the unread ones. */
  readonly rows: number;
  /** First and last time of the rows; undefined if no line is a row. */
  readonly extent: { readonly first: Nanoseconds; readonly last: Nanoseconds } | undefined;

  private constructor(
    duckdb: OpenDuckDB,
    file: string,
    unread: Buffer,
    found: Pick<RemappedLines, "rows" | "extent">,
  ) {
    this.#duckdb = duckdb;
    this.#file = file;
    this.unread = unread;
    this.rows = found.rows;
    this.extent = found.extent;
  }

  /**
   * Turns a holding's rows, including those set aside, back into the gateway's form with `from`, reads them with `to`,
   * and sorts them by time and seq; if seq is derived, by time, in their former order within a time. Throws as
   * `remapLines` does, and `archive_damaged` if a file is not what was committed.
   */
  static async make(
    journal: RunJournal,
    duckdb: OpenDuckDB,
    { table, from, to }: { readonly table: Table; readonly from: RowMap; readonly to: RowMap },
    holding: Holding,
    signal: AbortSignal,
  ): Promise<RemappedLines> {
    const text = journal.stagingFile(journal.nextName(table.name, "remapped.ndjson"));
    const sorted = journal.stagingFile(journal.nextName(table.name, "parquet"));
    const unread: Buffer[] = [];
    const handle = await open(text, "w", 0o600);
    try {
      async function* segmentTexts() {
        for (const segment of holding.segments) {
          signal.throwIfAborted();
          yield await journal.textOf(segment);
        }
      }
      for await (const lines of remapLines(segmentTexts(), { table, from, to, run: journal.run })) {
        await handle.write(lines);
      }
      const normaliser = new RowNormaliser(table, to, journal.run);
      for (const { reason, raw, encoding, foreign } of await journal.recordsAside(holding.quarantine)) {
        if (encoding === "base64") unread.push(Buffer.from(raw, "base64"), Buffer.from("\n"));
        // to any other map, rows of a gateway with runvault's own contract are foreign
        else if (foreign || isIdentityMap(from)) await handle.write(normaliser.row(Buffer.from(raw)));
        else await handle.write(`${badRowLine({ reason, text: raw }, undefined)}\n`);
      }
    } finally {
      await handle.close();
    }
    const { connection } = duckdb;
    await connection.run(sortSql(text, sorted, to.columns.seq?.kind === "derived"));
    await rm(text);
    const reader = await connection.runAndReadAll(
      `SELECT count(*), min(ts) FILTER (is_row), max(ts) FILTER (is_row) FROM ${parquetRows([sorted])}`,
    );
    const [rows, first, last] = reader.getRows()[0] as [bigint, bigint | null, bigint | null];
    const extent = first === null || last === null ? undefined : { first, last };
    return new RemappedLines(duckdb, sorted, Buffer.concat(unread), { rows: Number(rows), extent });
  }

  /** The time of the first line at or after an instant; undefined if there is none. Bad lines are within the extent. */
  async nextTime(from: Nanoseconds): Promise<Nanoseconds | undefined> {
    const reader = await this.#duckdb.connection.runAndReadAll(
      `SELECT min(placed) FROM (${this.#placedSql()}) WHERE placed >= ${from}`,
    );
    return (reader.getRows()[0]![0] as bigint | null) ?? undefined;
  }

  /** The lines within a window, in order. */
  async *within(from: Nanoseconds, to: Nanoseconds): AsyncGenerator<Uint8Array> {
    const where = `WHERE placed >= ${from} AND placed < ${to}`;
    const { connection } = this.#duckdb;
    const counted = await connection.runAndReadAll(`SELECT count(*) FROM (${this.#placedSql()}) ${where}`);
    const result = await connection.stream(`SELECT line || chr(10) FROM (${this.#placedSql()}) ${where}`);
    for await (const { chunk, rows } of countedStream(result, Number(counted.getRows()[0]![0]))) {
      yield new RawStrings(chunk, 0).joined(rows);
    }
  }

  #placedSql(): string {
    const { first, last } = this.extent ?? { first: 0n, last: 0n };
    const placed = `CASE WHEN is_row THEN ts ELSE greatest(least(coalesce(ts, ${first}), ${last}), ${first}) END`;
    return `SELECT line, ${placed} AS placed FROM ${parquetRows([this.#file])}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#file, { force: true });
  }
}

/** Lines that are not rows are sorted by their time, or come first. */
function sortSql(text: string, sorted: string, isDerived: boolean): string {
  const lineBytes = longestLineBytes + 64 * 1024;
  const options = [
    "columns = {'line': 'VARCHAR'}",
    "auto_detect = false, header = false, delim = '', quote = '', escape = ''",
    "strict_mode = true, hive_partitioning = false",
    `max_line_size = ${lineBytes}, buffer_size = ${lineBytes * 2}`,
  ];
  const lines = `SELECT line, row_number() OVER () AS position FROM read_csv(${fileList([text])}, ${options.join(", ")})`;
  const member = (name: string, type: string) =>
    `TRY_CAST(json_extract_string(line, '$.${name}') AS ${type})`;
  const keyed = `SELECT line, position, ${member("ts_event", "BIGINT")} AS ts, ${member("seq", "UBIGINT")} AS seq,
    json_extract_string(line, '$.run_id') IS NOT NULL AS is_row FROM (${lines})`;
  const order = isDerived ? "ts NULLS FIRST, position" : "ts NULLS FIRST, seq NULLS FIRST, position";
  return `COPY (SELECT line, ts, is_row FROM (${keyed}) ORDER BY ${order})
    TO ${literal(sorted)} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 61440, USE_TMP_FILE false)`;
}
