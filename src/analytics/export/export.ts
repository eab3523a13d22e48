import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathName } from "../../archive/layout.ts";
import { dictionaryLimit, parquetOptions } from "../../duckdb/parquet-options.ts";
import { literal } from "../../duckdb/sql.ts";
import type { RowChunk } from "../../duckdb/whole-stream.ts";
import { Disposables } from "../../model/disposables.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { arrowBatches, arrowSchema } from "../arrow/arrow-batch.ts";
import { arrowIpc } from "../arrow/arrow-ipc.ts";
import { longestStringsSql, stringPieces } from "../arrow/string-pieces.ts";
import type { ExportedAnalytics } from "./export-analytics.ts";
import { writeDatabase } from "./export-database.ts";
import { ExportFile } from "./export-file.ts";
import { type ExportFormat, exportFormats, type Partition, type StreamFormat } from "./export-format.ts";
import { csvHeader, csvLineSql, lineText, ndjsonLineSql } from "./export-lines.ts";
import type { ExportSession } from "./export-session.ts";
import type { LinkedRuns } from "./linked-rows.ts";

export interface ExportTarget {
  readonly format: ExportFormat;
  /** A file for one table or a database, otherwise a folder. */
  readonly out: string;
  /** Replaces existing files. */
  readonly force: boolean;
  /** `run`: a file per table and run, TABLE/INSTANCE/RUN; null: a file per table. */
  readonly partition: Partition | null;
  /** Adds the tables of trades and the macros to a database, which must have the tables that they read. */
  readonly analytics?: ExportedAnalytics | undefined;
  /** Makes a database read the archive's files instead of containing copies. */
  readonly views?: LinkedRuns | undefined;
  /** A folder in which no file may be: the archive's. */
  readonly outside: string;
  /** Called with a table's name before its rows are read. */
  readonly onTable?: (table: TableName) => void;
  /** Called with the rows and bytes that were written since the last call. */
  readonly onWritten?: (rows: number, bytes: number) => void;
  /** Called at named moments of an export, at each of which a test kills the process. */
  readonly step?: (name: string) => void;
}

/** A file that was written. */
export interface ExportedFile {
  readonly file: string;
  readonly tables: readonly { readonly table: TableName; readonly rows: bigint }[];
  /** The run, if each file has the rows of one. */
  readonly run: RunRef | null;
  readonly bytes: number;
}

/** One file to write, of one table. */
interface Part {
  readonly table: Table;
  readonly run: RunRef | null;
  readonly place: string;
}

/**
 * Writes tables to files. None is moved to its final name before all are written. Throws `invalid_argument` if one
 * already exists, and storage errors if the disk fails.
 */
export async function exportTables(
  session: ExportSession,
  tables: readonly Table[],
  target: ExportTarget,
): Promise<ExportedFile[]> {
  const { format, out, force, outside, onTable, onWritten, step } = target;
  await using files = new Disposables();
  const isDatabase = format === "duckdb";
  const create = async (file: string) =>
    files.use(await ExportFile.create(file, { force, outside, isDatabase }));
  const written: { file: ExportFile; tables: ExportedFile["tables"]; run: RunRef | null }[] = [];
  if (isDatabase) {
    const file = await create(out);
    const rows = await writeDatabase(session, tables, file.aside, target);
    const counted = tables.map(({ name }, index) => ({ table: name, rows: rows[index]! }));
    written.push({ file, tables: counted, run: null });
  } else {
    const parts = tables.flatMap((table) => partsOf(session, table, tables.length, target));
    if (target.partition !== null) await refuseStrangers(out, tables, parts);
    const places: [Part, ExportFile][] = [];
    for (const part of parts) places.push([part, await create(part.place)]);
    for (const [{ table, run }, file] of places) {
      onTable?.(table.name);
      if (run !== null) await session.narrow(table, run);
      const rows =
        format === "parquet"
          ? await writeParquet(session, table, file.aside)
          : await writePieces(session, table, format, file, target);
      if (format === "parquet") onWritten?.(Number(rows), 0);
      written.push({ file, tables: [{ table: table.name, rows }], run });
    }
  }
  const exported: ExportedFile[] = [];
  for (const { file, tables, run } of written)
    exported.push({ file: file.file, tables, run, bytes: await file.sync() });
  step?.("export-written");
  for (const { file } of written) await file.putInPlace();
  return exported;
}

/**
 * The files of a table. Readers make columns of names with `=`: with a number or date as type if ids look like one, at
 * which pandas stops, because the files have that column as text.
 */
function partsOf(
  session: ExportSession,
  table: Table,
  count: number,
  { format, out, partition }: Pick<ExportTarget, "format" | "out" | "partition">,
): Part[] {
  const ending = exportFormats[format];
  if (partition === null) {
    return [{ table, run: null, place: count === 1 ? out : join(out, `${table.name}.${ending}`) }];
  }
  return session.runsOf(table).map((run) => {
    const { instanceId, runId } = run;
    return { table, run, place: join(out, table.name, seenName(instanceId), `${seenName(runId)}.${ending}`) };
  });
}

/** An id as a name that every reader accepts: pyarrow skips names that begin with `_`. */
function seenName(id: string): string {
  return pathName(id).replace(/^_/, "%5F");
}

/**
 * Throws `invalid_argument` if a folder that readers take for one table contains files that this export does not write.
 */
async function refuseStrangers(out: string, tables: readonly Table[], parts: readonly Part[]): Promise<void> {
  const own = new Set(parts.map(({ place }) => place));
  for (const { name } of tables) {
    const found = await readdir(join(out, name), { recursive: true, withFileTypes: true }).catch(() => []);
    const stranger = found.find(
      (entry) =>
        !entry.isDirectory() && !entry.name.startsWith(".") && !own.has(join(entry.parentPath, entry.name)),
    );
    if (stranger === undefined) continue;
    throw new RunvaultError("invalid_argument", "a file already exists that this export would not write", {
      place: { file: join(stranger.parentPath, stranger.name) },
      hint: "Readers would take its rows for rows of the table: remove it, or name another --out.",
    });
  }
}

/**
 * Writes one table from front to back, in pieces. `write` returns false once the reader is gone. Returns the rows.
 */
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
    const { stored, extraSql } = session.storedAs(table);
    const line = format === "csv" ? csvLineSql(stored, decimals) : ndjsonLineSql(table, decimals, extraSql);
    const chunks = session.stream(session.rowsSql(table, line));
    yield* lineText(format === "csv" ? csvHeader(stored) : "", counted.count(chunks));
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

/** As the archive's own files, with sorted rows. */
async function writeParquet(session: ExportSession, table: Table, file: string): Promise<bigint> {
  const [rows] = await session.firstRow(
    `COPY (${session.rowsSql(table)}) TO ${literal(file)} (${parquetOptions(dictionaryLimit(table))})`,
  );
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
