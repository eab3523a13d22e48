import { dirname } from "node:path";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { isBucketName } from "../bucket.ts";
import { isJobName, isPathName, type Layout, recordOfName } from "../layout.ts";
import { asideOwner } from "./fsync-files.ts";

/** Whether a file's name is one that runvault itself gives in a certain folder. */
export type IsOwn = (name: string) => boolean;

/** A segment, Parquet, quarantine file or document, as `RunJournal.nextName` names it. */
const isWork: IsOwn = (name) =>
  /^[a-z_]+\.g\d+\.\d{6,}\.(?:ndjson\.zst|quarantine\.ndjson|remapped\.ndjson|parquet|json)$/.test(name);

/** A bucket's link, or one on its way to a bucket's name. */
const isLinkedBucket: IsOwn = (name) =>
  (name.endsWith(".parquet") && isBucketName(name.slice(0, -".parquet".length))) ||
  /^\.\d+\.part$/.test(name);

/** The names of files in a run's own folders. Nothing else there was made by runvault, and nothing else is removed. */
export const ownFiles = {
  data: replaced(isWork),
  quarantine: replaced(isWork),
  pending: replaced((name) => name === "journal.ndjson" || isWork(name)),
  // DuckDB spills under names of this kind
  staging: (name: string) => isWork(name) || name.startsWith("duckdb_temp_"),
  tables: isLinkedBucket,
} satisfies Record<string, IsOwn>;

/** The folders that are a run's alone, with the names that its files have there. */
export function ownFoldersOf(
  layout: Layout,
  run: RunRef,
): { readonly folder: string; readonly isOwn: IsOwn }[] {
  return [
    ...tableNames.map((table) => ({ folder: layout.tableDir(table, run), isOwn: ownFiles.tables })),
    { folder: layout.dataDir(run), isOwn: ownFiles.data },
    { folder: layout.quarantineDir(run), isOwn: ownFiles.quarantine },
    ...workFoldersOf(layout, run),
  ];
}

/**
 * The folders of work on a run that is not committed: those of this job, and, where they are in a scratch folder, those
 * in the archive, where a job without one may have been stopped.
 */
export function workFoldersOf(
  layout: Layout,
  run: RunRef,
): { readonly folder: string; readonly isOwn: IsOwn }[] {
  return [...new Set([layout, layout.withoutScratch()])].flatMap((one) => [
    { folder: one.stagingDir(run), isOwn: ownFiles.staging },
    { folder: one.pendingDir(run), isOwn: ownFiles.pending },
  ]);
}

/** Every folder in which jobs on a run write or remove files. */
export function foldersOf(layout: Layout, run: RunRef): string[] {
  return [
    dirname(layout.manifestFile(run)),
    dirname(layout.lockFile(run)),
    dirname(layout.cacheFile(run)),
    layout.jobsDir,
    ...ownFoldersOf(layout, run).map(({ folder }) => folder),
  ];
}

/** What belongs in a folder of the archive. */
export interface FolderShape {
  readonly isFile: IsOwn;
  /** What belongs in the folder of this name; undefined where none belongs here. */
  readonly folder: (name: string) => FolderShape | undefined;
}

const none: IsOwn = () => false;

function files(isFile: IsOwn): FolderShape {
  return { isFile, folder: () => undefined };
}

/** One folder for each instance, named as ids are. */
function byInstance(shape: FolderShape, isFile: IsOwn = none): FolderShape {
  return { isFile, folder: (name) => (isPathName(name) ? shape : undefined) };
}

/** One folder for each instance, and in it one for each run. */
function byRun(isFile: IsOwn): FolderShape {
  return byInstance(byInstance(files(isFile)));
}

/** Certain folders and no others. */
function named(folders: Readonly<Record<string, FolderShape>>, isFile: IsOwn = none): FolderShape {
  return { isFile, folder: (name) => (Object.hasOwn(folders, name) ? folders[name] : undefined) };
}

function each(names: readonly string[], shape: FolderShape): Record<string, FolderShape> {
  return Object.fromEntries(names.map((name) => [name, shape]));
}

/** A file of this kind, or one that is to replace it. */
function replaced(isFile: IsOwn): IsOwn {
  return (name) => isFile(asideOwner(name) ?? name);
}

const perRun = byInstance(files(replaced((name) => /^[^.].*\.json$/.test(name))));
const staged = byRun(ownFiles.staging);
const swapped = named(each(["next", "former"], byRun(ownFiles.tables)));
const tablesAside = named(
  each(
    tableNames.map((name) => `.tables-${name}`),
    swapped,
  ),
);

/** The archive from its root down: every name that runvault itself gives. */
export const archiveShape: FolderShape = named(
  {
    runs: perRun,
    cache: perRun,
    data: byRun(ownFiles.data),
    tables: named(each(tableNames, byRun(ownFiles.tables))),
    quarantine: byRun(ownFiles.quarantine),
    pending: byRun(ownFiles.pending),
    staging: { isFile: none, folder: (name) => tablesAside.folder(name) ?? staged.folder(name) },
    jobs: {
      isFile: replaced((name) => /^rebuild-[0-9a-f]{16}\.json$/.test(name)),
      folder: (name) => (isJobName(name) ? files((record) => recordOfName(record) !== null) : undefined),
    },
    locks: byInstance(
      files((name) => /^[^.].*\.duckdb(?:\.wal)?$/.test(name)),
      (name) => /^\.(?:archive|reading-\d+-\d+-\d+|job-[a-z0-9-]+)\.duckdb(?:\.wal)?$/.test(name),
    ),
  },
  replaced((name) => name === "archive.json" || name === "sources.json"),
);
