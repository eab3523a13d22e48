import { rm } from "node:fs/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { canonicalLineSql } from "../../duckdb/canonical-sql.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { openDuckDB } from "../../duckdb/open-duckdb.ts";
import { RawStrings } from "../../duckdb/raw-vector.ts";
import { rowHashWithin } from "../../duckdb/row-hash-within.ts";
import { parquetRows } from "../../duckdb/sql.ts";
import { CutStream, countedStream } from "../../duckdb/whole-stream.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import { notArchived } from "../../model/usual-errors.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { latestView, type TableView } from "../manifest/table-view.ts";
import { inData, WholeFiles } from "../read/whole-files.ts";
import { localFiles } from "../storage/local-files.ts";
import { readSegment } from "../write/segment.ts";
import { firstDifference, type LineDifference } from "./diff-lines.ts";
import { compareManifests, compareTables } from "./diff-manifest.ts";

export interface DiffOptions {
  /** Only these runs; every run of both archives unless given. */
  readonly runs?: readonly RunRef[];
  readonly signal?: AbortSignal;
  /** Called after each table. */
  readonly onTable?: (run: RunRef, table: TableDiff) => void;
}

export interface TableDiff {
  readonly table: TableName;
  readonly equal: boolean;
  /** Row counts of the segments; null if that side does not have the table. */
  readonly rows: { readonly a: number | null; readonly b: number | null };
  /** Row hashes of the Parquet files as `rows:sum`; null if that side has no Parquet. */
  readonly rowHash: { readonly a: string | null; readonly b: string | null };
  readonly firstDifference: LineDifference | null;
  readonly differences: readonly string[];
  readonly notes: readonly string[];
}

export interface RunDiff {
  readonly run: RunRef;
  readonly equal: boolean;
  /** Of the manifests, tables apart. */
  readonly differences: readonly string[];
  readonly notes: readonly string[];
  readonly tables: readonly TableDiff[];
}

export interface ArchiveDiff {
  readonly equal: boolean;
  readonly runs: readonly RunDiff[];
  readonly onlyInA: readonly RunRef[];
  readonly onlyInB: readonly RunRef[];
}

/**
 * Compares the data of two archives: per run and table the same lines in the same order, the same row hash, the same
 * buckets with the same counts, and the same manifest except for what a new run of the job changes. Segment boundaries
 * and the kind of proof make no difference; a different proof is noted. Tables whose rows came unsorted are compared by
 * their sorted rows. Throws `archive_damaged` if a side cannot be read, and `not_archived` for a requested run that
 * neither has.
 */
export async function diffArchives(a: Archive, b: Archive, options: DiffOptions = {}): Promise<ArchiveDiff> {
  const { runs, signal } = options;
  const [left, right] = [await manifestsOf(a, runs), await manifestsOf(b, runs)];
  for (const run of runs ?? []) {
    if (left.has(keyOf(run)) || right.has(keyOf(run))) continue;
    throw notArchived(run, "neither archive holds this run");
  }
  const onlyInA = [...left].flatMap(([key, manifest]) => (right.has(key) ? [] : [refOf(manifest)]));
  const onlyInB = [...right].flatMap(([key, manifest]) => (left.has(key) ? [] : [refOf(manifest)]));
  const compared: RunDiff[] = [];
  const tempDirectory = await makeTemporaryFolder("diff");
  try {
    await using duckdb = await openDuckDB({ memoryLimitMb: 256, threads: 2, tempDirectory });
    const second = await duckdb.connect();
    const wholes = [new WholeFiles(a), new WholeFiles(b)] as const;
    for (const [key, manifest] of left) {
      const other = right.get(key);
      if (other === undefined) continue;
      signal?.throwIfAborted();
      const sides: [Side, Side] = [
        { archive: a, whole: wholes[0], manifest, connection: duckdb.connection },
        { archive: b, whole: wholes[1], manifest: other, connection: second },
      ];
      compared.push(await diffRun(sides, options));
    }
  } finally {
    await rm(tempDirectory, { recursive: true, force: true });
  }
  const equal = onlyInA.length + onlyInB.length === 0 && compared.every((run) => run.equal);
  return { equal, runs: compared, onlyInA, onlyInB };
}

interface Side {
  readonly whole: WholeFiles;
  readonly archive: Archive;
  readonly manifest: Manifest;
  /** One for each side: a connection runs one query at a time, and both sides are read in parallel. */
  readonly connection: DuckDBConnection;
}

async function diffRun(sides: [Side, Side], options: DiffOptions): Promise<RunDiff> {
  const [{ manifest: a }, { manifest: b }] = sides;
  const run = refOf(a);
  const { differences, notes } = compareManifests(a, b);
  const tables: TableDiff[] = [];
  for (const name of tableNames) {
    if (a.tables[name] === undefined && b.tables[name] === undefined) continue;
    options.signal?.throwIfAborted();
    const table = await diffTable(sides, name, options.signal);
    options.onTable?.(run, table);
    tables.push(table);
  }
  const equal = differences.length === 0 && tables.every((table) => table.equal);
  return { run, equal, differences, notes, tables };
}

async function diffTable(
  sides: [Side, Side],
  name: TableName,
  signal: AbortSignal | undefined,
): Promise<TableDiff> {
  const [inA, inB] = sides.map(({ manifest }) => manifest.tables[name]);
  const { differences, notes } = compareTables(inA, inB);
  const [a, b] = [latestView(inA), latestView(inB)];
  const rows = { a: rowsOf(a), b: rowsOf(b) };
  for (const { whole, manifest } of sides) {
    await whole.require(manifest, inData(latestView(manifest.tables[name])?.parquet ?? []), signal);
  }
  // one after the other: where one fails, no query of the other may still run when DuckDB is closed
  const rowHash = { a: await rowHashOf(sides[0], name), b: await rowHashOf(sides[1], name) };
  if (rowHash.a !== rowHash.b)
    differences.push(`row hash: ${rowHash.a ?? "none"} and ${rowHash.b ?? "none"}`);
  let difference: LineDifference | null = null;
  if (a !== undefined && b !== undefined) {
    if (rows.a !== rows.b) differences.push(`rows: ${rows.a} and ${rows.b}`);
    // the conversion decides the order of rows that arrived unsorted, so it is found in Parquet
    const unsorted = [...a.segments, ...b.segments].some(({ sorted }) => !sorted);
    const [left, right] = sides.map((side) =>
      unsorted ? parquetText(side, name, signal) : segmentText(side, name, signal),
    );
    difference = await firstDifference(left!, right!);
    if (difference !== null) {
      const same = rowHash.a !== null && rowHash.a === rowHash.b;
      differences.push(
        same
          ? "lines differ, though the rows are the same: they are in another order or printed differently"
          : "lines differ",
      );
    }
  }
  return {
    table: name,
    equal: differences.length === 0,
    rows,
    rowHash,
    firstDifference: difference,
    differences,
    notes,
  };
}

async function* segmentText(
  { archive, manifest }: Side,
  name: TableName,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const { layout, store } = archive;
  for (const segment of latestView(manifest.tables[name])?.segments ?? []) {
    signal?.throwIfAborted();
    yield await readSegment(store, layout.committedKey(manifest, "data", segment.file), segment);
  }
}

async function* parquetText(
  side: Side,
  name: TableName,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const files = await parquetFiles(side, name);
  if (files.length === 0) return;
  const promised = sumOf(latestView(side.manifest.tables[name])?.parquet ?? []);
  const result = await side.connection.stream(
    `SELECT ${canonicalLineSql(tableNamed(name), "", "\n")} FROM ${parquetRows(files)}`,
  );
  try {
    for await (const { chunk, rows } of countedStream(result, promised)) {
      signal?.throwIfAborted();
      yield new RawStrings(chunk, 0).joined(rows);
    }
  } catch (thrown) {
    if (!(thrown instanceof CutStream)) throw thrown;
    throw unreadable(side, name, `only ${thrown.rows} of ${promised} rows could be read`);
  }
}

async function rowHashOf(side: Side, name: TableName): Promise<string | null> {
  const files = await parquetFiles(side, name);
  if (files.length === 0) return null;
  try {
    const { rows, hash } = await rowHashWithin(side.connection, tableNamed(name), files);
    return `${rows}:${hash}`;
  } catch (thrown) {
    const { message } = duckDBError(thrown, "its Parquet files cannot be read");
    throw unreadable(side, name, message, thrown);
  }
}

function unreadable(
  { archive, manifest }: Side,
  table: TableName,
  message: string,
  cause?: unknown,
): RunvaultError {
  const { instanceId: instance, runId: run } = manifest;
  return new RunvaultError("archive_damaged", message, {
    cause,
    place: { instance, run, table, file: archive.layout.dataDir(manifest) },
    hint: "Run `runvault verify` to see which file it is.",
  });
}

async function parquetFiles({ archive, manifest }: Side, name: TableName): Promise<string[]> {
  return await localFiles(archive, manifest, latestView(manifest.tables[name])?.parquet ?? []);
}

async function manifestsOf(
  archive: Archive,
  runs: readonly RunRef[] | undefined,
): Promise<Map<string, Manifest>> {
  if (runs === undefined) {
    return new Map((await archive.manifests()).map((manifest) => [keyOf(manifest), manifest]));
  }
  const found = new Map<string, Manifest>();
  for (const run of runs) {
    const manifest = await archive.manifest(run);
    if (manifest !== null) found.set(keyOf(run), manifest);
  }
  return found;
}

function keyOf({ instanceId, runId }: RunRef): string {
  return JSON.stringify([instanceId, runId]);
}

function refOf({ instanceId, runId }: RunRef): RunRef {
  return { instanceId, runId };
}

function rowsOf(table: TableView | undefined): number | null {
  return table === undefined ? null : sumOf(table.segments);
}

function sumOf(files: readonly { readonly rows: number }[]): number {
  return files.reduce((sum, { rows }) => sum + rows, 0);
}
