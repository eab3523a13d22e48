import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import { type TableName, tableNames } from "../model/table.ts";
import { notArchived } from "../model/usual-errors.ts";
import type { Archive } from "./archive.ts";
import type { OpenDuckDB } from "./duckdb.ts";
import { JobDuckDB } from "./job-duckdb.ts";
import { type Manifest, parseManifest, type TableManifest } from "./manifest.ts";
import { ownFiles } from "./own-names.ts";
import { lstatOrNull } from "./real-folder.ts";
import { checkDocuments, checkLinks, checkUnreferenced, namesIn, tablesOf } from "./verify-files.ts";
import { checkManifest } from "./verify-manifest.ts";
import { checkParquet } from "./verify-parquet.ts";
import { CheckList, damageOf, type VerifyReport } from "./verify-report.ts";
import { checkFills, checkRows } from "./verify-rows.ts";
import { checkSegments } from "./verify-segments.ts";

export type { CheckLevel, CheckName, VerifyCheck, VerifyReport } from "./verify-report.ts";

export interface VerifyProgress {
  readonly run: RunRef;
  readonly table: TableName;
  /** Rows of the run checked so far, and to check; `deep` counts each row twice. */
  readonly rows: number;
  readonly totalRows: number;
}

export interface VerifyOptions {
  /** Compares every row, too. Default false. */
  readonly deep?: boolean;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: VerifyProgress) => void;
  /** Memory DuckDB may take, in MiB. 256: rows stream through; only a table whose seq falls and rises needs more. */
  readonly memoryLimitMb?: number;
  readonly threads?: number;
  /** What reads, for a caller who verifies several runs, one after another. Default: one for each call. */
  readonly duckdb?: JobDuckDB;
}

/**
 * Checks one committed run against itself, without belief in what its writer logged: the manifest's own sense, the
 * bytes of every file, lines and rows counted anew; `deep` compares every row of Parquet with its line. Whatever is
 * wrong with the archive is in the report, nothing is repaired. Throws `not_archived` where the run was never
 * committed, and what the disk itself throws.
 */
export async function verifyRun(
  archive: Archive,
  run: RunRef,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const { deep = false, signal, memoryLimitMb = 256, threads = 2 } = options;
  const list = new CheckList(run, archive.dir);
  let manifest: Manifest | null;
  try {
    manifest = await archive.manifest(run);
  } catch (error) {
    list.add(null, "manifest", "damaged", damageOf(error), [archive.layout.manifestFile(run)]);
    return list.report(null);
  }
  if (manifest === null) {
    throw notArchived(run);
  }
  list.add(null, "manifest", "ok", `generation ${manifest.generation}`);
  const totalRows = rowsOf(manifest) * (deep ? 2 : 1);
  let rows = 0;
  const onRows = (table: TableName, count: number) => {
    rows += count;
    options.onProgress?.({ run: list.run, table, rows, totalRows });
  };
  checkManifest(list, manifest);
  await checkDocuments(list, archive, manifest);
  await checkUnreferenced(list, archive, manifest);
  const tempDirectory = await mkdtemp(join(tmpdir(), "runvault-verify-"));
  try {
    await using ownDuckDB = new JobDuckDB();
    const duckdb = await (options.duckdb ?? ownDuckDB).forJob({ memoryLimitMb, threads, tempDirectory });
    using _interrupt = interruptOn(signal, duckdb);
    let whole = true;
    for (const [name, table] of tablesOf(manifest)) {
      const segments = await checkSegments(list, archive, manifest, name, table, signal);
      const parquet = await checkParquet(list, archive, manifest, name, table, duckdb.connection, signal);
      onRows(name, rowsIn(table));
      if (segments.size + parquet.size > 0) {
        whole = false;
        continue;
      }
      if (!deep) continue;
      await checkRows({
        list,
        dir: archive.layout.dataDir(manifest),
        manifest,
        name,
        table,
        connection: duckdb.connection,
        onRows: (count) => onRows(name, count),
        signal,
      });
    }
    await checkLinks(list, archive, manifest);
    if (deep && whole) await checkFills(list, archive, manifest, duckdb.connection);
  } finally {
    await rm(tempDirectory, { recursive: true, force: true });
  }
  return list.report(manifest.generation);
}

/**
 * Verifies every run of the archive, one report each, as they are done. A manifest that cannot be read is a report of
 * its own, under the ids that its path names; so is what people glob of a run that is not archived.
 */
export async function* verifyArchive(
  archive: Archive,
  options: VerifyOptions = {},
): AsyncGenerator<VerifyReport> {
  await using ownDuckDB = new JobDuckDB();
  const { duckdb = ownDuckDB } = options;
  const { runsDir } = archive.layout;
  for (const instance of await namesIn(runsDir)) {
    for (const name of await namesIn(join(runsDir, instance))) {
      if (name.startsWith(".") || !name.endsWith(".json")) continue;
      options.signal?.throwIfAborted();
      const file = join(runsDir, instance, name);
      const found = await readManifestFile(archive, file);
      if (typeof found !== "string") {
        yield await verifyRun(archive, found, { ...options, duckdb });
        continue;
      }
      const list = new CheckList(
        { instanceId: idOf(instance), runId: idOf(name.slice(0, -".json".length)) },
        archive.dir,
      );
      list.add(null, "manifest", "damaged", found, [file]);
      yield list.report(null);
    }
  }
  yield* verifyLeftovers(archive);
}

/** The folders that people glob show what no manifest stands for: `rm` was killed, or something else wrote there. */
async function* verifyLeftovers(archive: Archive): AsyncGenerator<VerifyReport> {
  const { runsDir } = archive.layout;
  const left = new Map<string, [TableName, string][]>();
  for (const table of tableNames) {
    const folder = archive.layout.tablesDir(table);
    for (const instance of await namesIn(folder)) {
      const names = await namesIn(join(folder, instance));
      // after the folders: a commit puts its manifest there first
      const archived = new Set(await namesIn(join(runsDir, instance)));
      for (const name of names) {
        if (archived.has(`${name}.json`)) continue;
        const run = join(instance, name);
        // what is not ours is for `verifyPlaces`, and `runvault rm` leaves it
        if ((await lstatOrNull(join(folder, run)))?.isDirectory() !== true) continue;
        const files = await namesIn(join(folder, run));
        if (files.length > 0 && !files.some(ownFiles.tables)) continue;
        left.set(run, [...(left.get(run) ?? []), [table, join(folder, run)]]);
      }
    }
  }
  for (const [run, folders] of left) {
    const [instance = "", name = ""] = run.split(sep);
    const list = new CheckList({ instanceId: idOf(instance), runId: idOf(name) }, archive.dir);
    for (const [table, folder] of folders)
      list.add(table, "links", "notice", "files of a run that is not archived; `runvault rm` removes them", [
        folder,
      ]);
    yield list.report(null);
  }
}

/** The run a manifest file is about, or what is wrong with the file. */
async function readManifestFile(archive: Archive, file: string): Promise<RunRef | string> {
  try {
    const { instanceId, runId } = parseManifest(await readFile(file, "utf8"), file);
    if (archive.layout.manifestFile({ instanceId, runId }) === file) return { instanceId, runId };
    return `the manifest is that of ${instanceId}/${runId}, whose place is another`;
  } catch (error) {
    return damageOf(RunvaultError.from(error, { place: { file } }));
  }
}

function idOf(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function interruptOn(signal: AbortSignal | undefined, { connection }: OpenDuckDB): Disposable {
  const interrupt = () => connection.interrupt();
  signal?.addEventListener("abort", interrupt);
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", interrupt) };
}

function rowsOf(manifest: Manifest): number {
  return tablesOf(manifest).reduce((sum, [, table]) => sum + rowsIn(table), 0);
}

function rowsIn(table: TableManifest): number {
  return table.segments.reduce((sum, { rows }) => sum + rows, 0);
}
