import { rm } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { interruptOn } from "../../duckdb/open-duckdb.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import { notArchived } from "../../model/usual-errors.ts";
import type { Archive } from "../archive.ts";
import { type FoundRun, foundRuns } from "../manifest/found-runs.ts";
import type { Holding, Manifest, Segment } from "../manifest/manifest.ts";
import { everyFile } from "../manifest/manifest-files.ts";
import { holdingsOf } from "../manifest/table-view.ts";
import { WholeFiles } from "../read/whole-files.ts";
import { damageOf } from "../storage/damage-of.ts";
import { localFiles } from "../storage/local-files.ts";
import { namesIn } from "../storage/names-in.ts";
import { ownFiles } from "../storage/own-names.ts";
import { lstatOrNull, requireRealFolders } from "../storage/real-folder.ts";
import { checkDocuments, checkLinks, checkUnreferenced, tablesOf } from "./verify-files.ts";
import { checkManifest } from "./verify-manifest.ts";
import { checkParquet } from "./verify-parquet.ts";
import { entriesIn } from "./verify-places.ts";
import { CheckList, type VerifyReport } from "./verify-report.ts";
import { checkFills, checkRows } from "./verify-rows.ts";
import type { Sample } from "./verify-sample.ts";
import { checkSegments } from "./verify-segments.ts";

export type { CheckLevel, CheckName, VerifyCheck, VerifyReport } from "./verify-report.ts";

export interface VerifyProgress {
  readonly run: RunRef;
  readonly table: TableName;
  /** Rows of the run checked so far, and in all; `deep` counts each row twice. */
  readonly rows: number;
  readonly totalRows: number;
}

export interface VerifyOptions {
  /** Compare every row, too. Default false. */
  readonly deep?: boolean;
  /** The files to read; of others only presence and size are checked. Default: all. */
  readonly sample?: Sample | undefined;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: VerifyProgress) => void;
  /** DuckDB's memory limit in MiB. 256: rows stream through; only a table whose seq is not monotonic needs more. */
  readonly memoryLimitMb?: number;
  readonly threads?: number;
  /** DuckDB for several verifications, one after another. Default: one per call. */
  readonly duckdb?: JobDuckDB;
}

/**
 * Checks one committed run against itself, without trusting its writer: consistency of the manifest, the bytes of every
 * file, lines and rows counted again; `deep` compares every Parquet row with its line. All problems are in the report,
 * and nothing is repaired. Throws `not_archived` if the run was never committed, and disk errors.
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
  if (!(await isInRealFolders(list, archive, manifest))) return list.report(manifest.generation);
  const isRead = options.sample?.has ?? (() => true);
  const found = await checkDocuments(list, archive, manifest, isRead);
  await checkUnreferenced(list, archive, manifest);
  const tempDirectory = await makeTemporaryFolder("verify");
  try {
    await using ownDuckDB = new JobDuckDB();
    const duckdb = await (options.duckdb ?? ownDuckDB).forJob({ memoryLimitMb, threads, tempDirectory });
    using _interrupt = interruptOn(signal, duckdb);
    let whole = true;
    for (const [name, view] of ownViews(manifest)) {
      const table = view.own;
      const segments = await checkSegments(list, archive, manifest, name, table, isRead, signal);
      const { connection } = duckdb;
      const parquet = await checkParquet(list, archive, manifest, name, table, connection, isRead, signal);
      onRows(name, rowsIn(table));
      for (const file of segments) found.add(file);
      for (const path of parquet) found.add(basename(path));
      if (segments.size + parquet.size > 0) {
        whole = false;
        continue;
      }
      if (!deep) continue;
      await checkRows({
        list,
        pathOf: await pathsOf(archive, manifest, [...table.parquet, ...view.segments]),
        manifest,
        name,
        // its Parquet may also be made from proven segments
        table: { ...table, segments: view.segments },
        connection: duckdb.connection,
        onRows: (count) => onRows(name, count),
        signal,
      });
    }
    await checkLinks(list, archive, manifest, isRead);
    if (deep && whole) await checkFills(list, archive, manifest, duckdb.connection);
  } finally {
    await rm(tempDirectory, { recursive: true, force: true });
  }
  // verification ignores caches but jobs use them: recording damage makes the next job repair it
  if (found.size > 0) {
    const files = everyFile(manifest).filter(({ file }) => found.has(file));
    await new WholeFiles(archive).damagedOf(manifest, files);
  }
  return list.report(manifest.generation);
}

/** Files behind a link are not the run's: reported once, instead of for each missing file. */
async function isInRealFolders(list: CheckList, { layout }: Archive, run: RunRef): Promise<boolean> {
  try {
    await requireRealFolders(layout, [layout.dataDir(run), layout.quarantineDir(run)]);
    return true;
  } catch (error) {
    const message = damageOf(error);
    const { place, hint = null } = error as RunvaultError;
    const files = place.file === undefined ? [] : [place.file];
    list.add(null, "files", "damaged", `${message}; no file of the run was read`, files);
    list.remedy = hint;
    return false;
  }
}

export interface VerifyArchiveOptions extends VerifyOptions {
  /** The runs to verify. Default: all. */
  readonly runs?: readonly FoundRun[];
  /** Also check links of runs that are not archived. Default true. */
  readonly leftovers?: boolean;
}

/**
 * Verifies the archive's runs, and yields a report for each when it is done. An unreadable manifest has its own report,
 * under the ids in its path; so do links of a run that is not archived.
 */
export async function* verifyArchive(
  archive: Archive,
  options: VerifyArchiveOptions = {},
): AsyncGenerator<VerifyReport> {
  await using ownDuckDB = new JobDuckDB();
  const { duckdb = ownDuckDB, runs = foundRuns(archive), leftovers = true } = options;
  for await (const found of runs) {
    options.signal?.throwIfAborted();
    const report = await verifyFound(archive, found, { ...options, duckdb });
    if (report !== null) yield report;
  }
  if (leftovers) yield* verifyLeftovers(archive);
}

/** The report of a found run; null if it was removed since. */
async function verifyFound(
  archive: Archive,
  { run, damage }: FoundRun,
  options: VerifyOptions,
): Promise<VerifyReport | null> {
  if (damage === null) {
    try {
      return await verifyRun(archive, run, options);
    } catch (error) {
      if (error instanceof RunvaultError && error.code === "not_archived") return null;
      throw error;
    }
  }
  const list = new CheckList(run, archive.dir);
  list.add(null, "manifest", "damaged", damage.message, [damage.file]);
  list.remedy = damage.hint;
  return list.report(null);
}

/** Reports links without a manifest: `rm` was killed, or something else wrote there. */
async function* verifyLeftovers(archive: Archive): AsyncGenerator<VerifyReport> {
  const { runsDir } = archive.layout;
  const left = new Map<string, [TableName, string][]>();
  for (const table of tableNames) {
    const folder = archive.layout.tablesDir(table);
    for (const instance of await namesIn(folder)) {
      const names = await namesIn(join(folder, instance));
      // after the folders: a commit writes its manifest first
      const archived = new Set(await namesIn(join(runsDir, instance)));
      for (const name of names) {
        if (archived.has(`${name}.json`)) continue;
        const run = join(instance, name);
        // `verifyPlaces` handles foreign entries, and `runvault rm` leaves them
        if ((await lstatOrNull(join(folder, run)))?.isDirectory() !== true) continue;
        const files = await namesIn(join(folder, run));
        if (files.length > 0 && !files.some(ownFiles.tables)) continue;
        left.set(run, [...(left.get(run) ?? []), [table, join(folder, run)]]);
      }
    }
  }
  const data = await leftData(archive);
  for (const run of [...left.keys(), ...[...data.keys()].filter((one) => !left.has(one))]) {
    const [instance = "", name = ""] = run.split(sep);
    const { layout } = archive;
    const idIn = (own: string) => layout.idOf(own) ?? own;
    const list = new CheckList({ instanceId: idIn(instance), runId: idIn(name) }, archive.dir);
    for (const [table, folder] of left.get(run) ?? [])
      list.add(table, "links", "notice", "files of a run that is not archived", [folder]);
    // for a partly removed run only its links are reported; they are removed first
    if (!left.has(run))
      list.add(null, "unreferenced", "notice", "files of a run that is not archived", data.get(run));
    list.remedy = leftoversRemedy;
    yield list.report(null);
  }
}

/** Leftovers of a run do not show whether its manifest was removed or lost. */
const leftoversRemedy =
  "If the run was to be removed, `runvault rm` removes the rest; if not, restore its manifest below runs/ from a backup.";

/** Data folders of runs without a manifest, by the run's path; runs with uncommitted work do not count. */
async function leftData({ layout }: Archive): Promise<Map<string, string[]>> {
  const left = new Map<string, string[]>();
  for (const [top, isOwn] of [
    [join(layout.dir, "data"), ownFiles.data],
    [join(layout.dir, "quarantine"), ownFiles.quarantine],
  ] as const) {
    for (const instance of await foldersIn(top)) {
      for (const name of await foldersIn(join(top, instance))) {
        const run = join(instance, name);
        const folder = join(top, run);
        if (!(await namesIn(folder)).some(isOwn)) continue;
        // after the files: a commit that moves them there also writes its manifest
        if ((await lstatOrNull(join(layout.runsDir, instance, `${name}.json`))) !== null) continue;
        if ((await lstatOrNull(join(layout.pendingRoot, run))) !== null) continue;
        left.set(run, [...(left.get(run) ?? []), folder]);
      }
    }
  }
  return left;
}

/** The real folders in a folder; `verifyPlaces` handles links. */
async function foldersIn(folder: string): Promise<string[]> {
  if ((await lstatOrNull(folder))?.isDirectory() !== true) return [];
  return (await entriesIn(folder)).filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function pathsOf(
  archive: Archive,
  run: RunRef,
  files: readonly { readonly file: string }[],
): Promise<(file: string) => string> {
  const paths = await localFiles(archive, run, files);
  const byName = new Map(files.map(({ file }, index) => [file, paths[index]!]));
  return (file) => byName.get(file)!;
}

function rowsOf(manifest: Manifest): number {
  return ownViews(manifest).reduce((sum, [, { own }]) => sum + rowsIn(own), 0);
}

function rowsIn({ segments }: Holding): number {
  return segments.reduce((sum, { rows }) => sum + rows, 0);
}

/**
 * What to read of each table: its proven part, and the files of a later attempt that are not also proven (`own`), so
 * that none is read twice.
 */
function ownViews(
  manifest: Manifest,
): [TableName, { readonly segments: Segment[]; readonly own: Holding }][] {
  return tablesOf(manifest).flatMap(([name, table]) => {
    const seen = new Set<string>();
    const unseen = <F extends { readonly file: string }>(files: readonly F[]) =>
      files.filter(({ file }) => !seen.has(file));
    return holdingsOf(table).map((holding) => {
      const { segments, parquet, quarantine } = holding;
      const own = {
        ...holding,
        segments: unseen(segments),
        parquet: unseen(parquet),
        quarantine: unseen(quarantine),
      };
      for (const { file } of [...segments, ...parquet, ...quarantine]) seen.add(file);
      return [name, { segments, own }] satisfies [TableName, { segments: Segment[]; own: Holding }];
    });
  });
}
