import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { columnType } from "../../duckdb/column-type.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { fileList, parquetRows } from "../../duckdb/sql.ts";
import { storedColumns } from "../../model/profile/extra-column.ts";
import { type Column, type TableName, tableNamed } from "../../model/profile/table.ts";
import { countText } from "../../model/text/plural.ts";
import type { Archive } from "../archive.ts";
import type { Holding, Manifest } from "../manifest/manifest.ts";
import { openRegularFile } from "../storage/archive-file.ts";
import { localFiles } from "../storage/local-files.ts";
import { faultOfFile, faultOfSize, type IsRead, promisedFiles, wholeText } from "./verify-files.ts";
import type { CheckList, Fault } from "./verify-report.ts";
import { countLines } from "./verify-segments.ts";

/**
 * Checks a table's Parquet and quarantine files: their bytes, then rows, keys and column types as DuckDB reads them.
 * Returns the names of damaged ones.
 */
export async function checkParquet(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
  name: TableName,
  table: Holding,
  connection: DuckDBConnection,
  isRead: IsRead,
  signal: AbortSignal | undefined,
): Promise<Set<string>> {
  const dir = archive.layout.dataDir(manifest);
  const damaged = new Set<string>();
  const files: Fault[] = [];
  const promised = promisedFiles(archive, manifest, table);
  let read = 0;
  for (const file of promised) {
    signal?.throwIfAborted();
    const isOne = isRead(file.path);
    if (isOne) read++;
    const fault = isOne ? await faultOfFile(archive, file) : await faultOfSize(archive, file);
    if (fault === null) continue;
    files.push(fault);
    damaged.add(file.path);
  }
  list.faults(name, "files", files, wholeText(promised.length, read, "Parquet and quarantine files"));
  const rows: Fault[] = [];
  const types: Fault[] = [];
  let readRows = 0;
  let readFiles = 0;
  for (const parquet of table.parquet) {
    const path = join(dir, parquet.file);
    if (damaged.has(path) || !isRead(path)) continue;
    signal?.throwIfAborted();
    readRows += parquet.rows;
    readFiles++;
    try {
      const [local = path] = await localFiles(archive, manifest, [parquet]);
      const faultAt = (detail: string): Fault => ({ detail, files: [path] });
      for (const detail of await rowFaults(connection, local, parquet)) rows.push(faultAt(detail));
      for (const detail of await typeFaults(connection, local, name, table)) types.push(faultAt(detail));
    } catch (error) {
      damaged.add(path);
      rows.push({ detail: duckDBError(error, "DuckDB cannot read it").message, files: [path] });
    }
  }
  list.faults(name, "parquet-rows", rows, `${countText(readRows, "row")} in ${countText(readFiles, "file")}`);
  list.faults(name, "parquet-types", types, "columns and types match the contract and the manifest");
  const isLeft = (path: string) => isRead(path) && !damaged.has(path);
  await checkQuarantine(list, archive, manifest, name, table, isLeft);
  return damaged;
}

async function rowFaults(
  connection: DuckDBConnection,
  path: string,
  parquet: Holding["parquet"][number],
): Promise<string[]> {
  const faults: string[] = [];
  const must = (holds: boolean, detail: string) => {
    if (!holds) faults.push(detail);
  };
  const from = fileList([path]);
  const reader = await connection.runAndReadAll(
    `SELECT count(*), epoch_ns(min(key).ts), min(key).seq, epoch_ns(max(key).ts), max(key).seq,
      (SELECT CAST(sum(num_rows) AS BIGINT) FROM parquet_file_metadata(${from}))
    FROM (SELECT struct_pack(ts := ts_event, seq := seq) AS key FROM ${parquetRows([path])})`,
  );
  const [count, firstTs, firstSeq, lastTs, lastSeq, inMetadata] = reader.getRows()[0] ?? [];
  must(
    count === BigInt(parquet.rows),
    `it has ${countText(count as bigint, "row")}, but the manifest says ${parquet.rows}`,
  );
  must(
    inMetadata === count,
    `it has ${countText(count as bigint, "row")}, but its own metadata says ${inMetadata}`,
  );
  const key = (ts: unknown, seq: unknown) => `(${ts}, ${seq})`;
  const first = key(firstTs, firstSeq);
  const last = key(lastTs, lastSeq);
  must(
    first === key(parquet.first.ts, parquet.first.seq),
    `its first key is ${first}, but the manifest says ${key(parquet.first.ts, parquet.first.seq)}`,
  );
  must(
    last === key(parquet.last.ts, parquet.last.seq),
    `its last key is ${last}, but the manifest says ${key(parquet.last.ts, parquet.last.seq)}`,
  );
  return faults;
}

async function typeFaults(
  connection: DuckDBConnection,
  path: string,
  name: TableName,
  { exactTypes }: Holding,
): Promise<string[]> {
  const reader = await connection.runAndReadAll(`DESCRIBE SELECT * FROM ${parquetRows([path])}`);
  const found = reader.getRows().map(([column, type]) => `${column} ${type}`);
  const wanted = storedColumns(tableNamed(name), exactTypes).map(
    (column) => `${column.name} ${typeOf(column, exactTypes)}`,
  );
  const missing = wanted.filter((column) => !found.includes(column));
  // older archives may lack columns of a later contract; `rebuild` adds them
  const extra = found.filter((column) => !wanted.includes(column));
  if (missing.length + extra.length === 0) return [];
  const parts = [
    ...(missing.length === 0 ? [] : [`it lacks ${missing.join(", ")}`]),
    ...(extra.length === 0 ? [] : [`it has ${extra.join(", ")}`]),
  ];
  return [parts.join("; ")];
}

function typeOf(column: Column, exactTypes: Record<string, string>): string {
  if (column.kind === "exact" && exactTypes[column.name] === undefined)
    return "of a type the manifest does not name";
  return columnType(column, exactTypes);
}

async function checkQuarantine(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
  name: TableName,
  table: Holding,
  isLeft: IsRead,
): Promise<void> {
  if (table.quarantine.length === 0) return;
  const faults: Fault[] = [];
  for (const { file, rows, storedBytes } of table.quarantine) {
    const path = join(archive.layout.quarantineDir(manifest), file);
    if (!isLeft(path)) continue;
    const found = await recordsIn(archive, path, storedBytes);
    if (found !== rows)
      faults.push({
        detail: `it has ${countText(found, "record")}, but the manifest says ${rows}`,
        files: [path],
      });
  }
  list.faults(name, "quarantine", faults, `${countText(table.quarantine.length, "file")} of rows set aside`);
}

/** Counts the records of a quarantine file in pieces, because a manifest may give it any size. */
async function recordsIn({ layout, store }: Archive, path: string, storedBytes: number): Promise<number> {
  const { handle } = await openRegularFile(await store.localFile(layout.keyOf(path)), storedBytes);
  let records = 0;
  // closes the file, however the loop ends
  for await (const chunk of handle.createReadStream({ highWaterMark: 1 << 20 })) {
    records += countLines(chunk as Buffer).rows;
  }
  return records;
}
