import { join } from "node:path";
import type { Archive } from "../src/archive/archive.ts";
import { canonicalLineSql } from "../src/archive/canonical-sql.ts";
import { openDuckDB } from "../src/archive/duckdb.ts";
import { readSegment } from "../src/archive/segment.ts";
import { parquetRows } from "../src/archive/sql.ts";
import type { RunRef } from "../src/model/source.ts";
import { type TableName, tableNamed } from "../src/model/table.ts";

/** The lines an archive's committed segments hold of a table, in their order. */
export async function segmentLines(archive: Archive, run: RunRef, name: TableName): Promise<string[]> {
  const manifest = await archive.manifest(run);
  const lines: string[] = [];
  for (const segment of manifest?.tables[name]?.segments ?? []) {
    const text = await readSegment(join(archive.layout.dataDir(run), segment.file), segment);
    lines.push(...text.toString("utf8").split("\n").slice(0, -1));
  }
  return lines;
}

/** The canonical lines of an archive's committed Parquet rows of a table, in their order. */
export async function parquetLines(archive: Archive, run: RunRef, name: TableName): Promise<string[]> {
  const manifest = await archive.manifest(run);
  const files = (manifest?.tables[name]?.parquet ?? []).map(({ file }) =>
    join(archive.layout.dataDir(run), file),
  );
  if (files.length === 0) return [];
  await using duckdb = await openDuckDB({
    memoryLimitMb: 200,
    threads: 2,
    tempDirectory: join(archive.dir, "staging"),
  });
  const sql = `SELECT ${canonicalLineSql(tableNamed(name))} FROM ${parquetRows(files)}`;
  const reader = await duckdb.connection.runAndReadAll(sql);
  return reader.getRows().map(([line]) => String(line));
}
