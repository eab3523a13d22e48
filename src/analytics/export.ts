import { join } from "node:path";
import { dictionaryLimit, rowGroupRows } from "../archive/convert.ts";
import { literal } from "../archive/sql.ts";
import type { RowChunk } from "../archive/whole-stream.ts";
import type { Table, TableName } from "../model/table.ts";
import { arrowBatches, arrowSchema } from "./arrow-batch.ts";
import { arrowIpc } from "./arrow-ipc.ts";
import { writeDatabase } from "./export-database.ts";
import { ExportFile } from "./export-file.ts";
import { type ExportFormat, exportFormats, type StreamFormat } from "./export-format.ts";
import { csvHeader, csvLineSql, lineText, ndjsonLineSql } from "./export-lines.ts";
import type { ExportSession } from "./export-session.ts";
import { longestStringsSql, stringPieces } from "./string-pieces.ts";

export interface ExportTarget {
  readonly format: ExportFormat;
  /** A file for one table and for a database, else a folder. */
  readonly out: string;
  /** Replaces what is there already. */
  readonly force: boolean;
  /** Called with a table's name before its rows are read. */
  readonly onTable?: (table: TableName) => void;
  /** Called with the rows and bytes that were written since the last call. */
  readonly onWritten?: (rows: number, bytes: number) => void;
  /** Hears the named moments of an export; a test kills the process at each. */
  readonly step?: (name: string) => void;
}

/** A file that was written. */
export interface ExportedFile {
  readonly file: string;
  readonly tables: readonly { readonly table: TableName; readonly rows: bigint }[];
  readonly bytes: number;
}

/**
 * Writes tables to files. No file takes its place before all are written. Throws `invalid_argument` where one is there
 * already, storage errors where the disk does not take them.
 */
export async function exportTables(
  session: ExportSession,
  tables: readonly Table[],
  target: ExportTarget,
): Promise<ExportedFile[]> {
  const { format, out, force, onTable, onWritten, step } = target;
  await using files = new AsyncDisposableStack();
  const create = async (file: string) => files.use(await ExportFile.create(file, force));
  const written: { file: ExportFile; tables: ExportedFile["tables"] }[] = [];
  if (format === "duckdb") {
    const file = await create(out);
    const rows = await writeDatabase(session, tables, file.aside, onTable);
    written.push({ file, tables: tables.map(({ name }, index) => ({ table: name, rows: rows[index]! })) });
  } else {
    const place = (table: Table) =>
      tables.length === 1 ? out : join(out, `${table.name}.${exportFormats[format]}`);
    const places: [Table, ExportFile][] = [];
    for (const table of tables) places.push([table, await create(place(table))]);
    for (const [table, file] of places) {
      onTable?.(table.name);
      const rows =
        format === "parquet"
          ? await writeParquet(session, table, file.aside)
          : await writePieces(session, table, format, file, target);
      if (format === "parquet") onWritten?.(Number(rows), 0);
      written.push({ file, tables: [{ table: table.name, rows }] });
    }
  }
  const exported: ExportedFile[] = [];
  for (const { file, tables } of written)
    exported.push({ file: file.file, tables, bytes: await file.sync() });
  step?.("export-written");
  for (const { file } of written) await file.putInPlace();
  return exported;
}

/** Writes one table from front to back, in pieces. `write` gives false when nobody reads any more. Gives the rows. */
export async function exportStream(
  session: ExportSession,
  table: Table,
  format: StreamFormat,
  write: (piece: Uint8Array) => Promise<boolean>,
): Promise<bigint> {
  const counted = new CountedRows();
  for await (const piece of pieces(session, table, format, counted)) {
    if (!(await write(piece))) break;
  }
  return counted.rows;
}

async function writePieces(
  session: ExportSession,
  table: Table,
  format: StreamFormat | "arrow",
  file: ExportFile,
  { onWritten, step }: ExportTarget,
): Promise<bigint> {
  const counted = new CountedRows();
  let told = 0n;
  const watched = async function* () {
    for await (const piece of pieces(session, table, format, counted)) {
      yield piece;
      step?.("export-piece-written");
      onWritten?.(Number(counted.rows - told), piece.byteLength);
      told = counted.rows;
    }
  };
  await file.write(watched());
  return counted.rows;
}

async function* pieces(
  session: ExportSession,
  table: Table,
  format: StreamFormat | "arrow",
  counted: CountedRows,
): AsyncGenerator<Uint8Array> {
  const { decimals } = session.selection;
  if (format === "ndjson" || format === "csv") {
    const line = format === "csv" ? csvLineSql(table, decimals) : ndjsonLineSql(table, decimals);
    const chunks = session.stream(session.rowsSql(table, line));
    yield* lineText(format === "csv" ? csvHeader(table) : "", counted.count(chunks));
    return;
  }
  const sql = session.rowsSql(table);
  const columns = await session.columns(sql);
  const schema = arrowSchema(columns);
  const { list, spans } = stringPieces(columns, await session.firstRow(longestStringsSql(table, sql)));
  const chunks = session.stream(`SELECT ${list} FROM (${sql})`);
  const batches = arrowBatches(columns, schema, spans, counted.count(chunks));
  yield* arrowIpc(format === "arrow" ? "file" : "stream", batches);
}

/** As the archive's own files: sorted rows, small row groups, no dictionaries in which DuckDB takes -0 for 0. */
async function writeParquet(session: ExportSession, table: Table, file: string): Promise<bigint> {
  const options = `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE ${rowGroupRows}, DICTIONARY_SIZE_LIMIT ${dictionaryLimit(table)}, WRITE_BLOOM_FILTER false, USE_TMP_FILE false`;
  const [rows] = await session.firstRow(`COPY (${session.rowsSql(table)}) TO ${literal(file)} (${options})`);
  return BigInt(String(rows));
}

class CountedRows {
  rows = 0n;

  async *count(chunks: AsyncIterable<RowChunk>): AsyncGenerator<RowChunk> {
    for await (const chunk of chunks) {
      this.rows += BigInt(chunk.rows);
      yield chunk;
    }
  }
}
