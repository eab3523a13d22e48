import { dirname } from "node:path";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { isBucketName } from "../bucket.ts";
import { isJobName, isPathName, type Layout, recordOfName } from "../layout.ts";
import { asideOwner } from "./fsync-files.ts";

/** Whether runvault itself gives such a name in a certain folder. */
export type IsOwn = (name: string) => boolean;

/** A segment, Parquet, quarantine file or document, named by `RunJournal.nextName`. */
const isWork: IsOwn = (name) =>
  /^[a-z_]+\.g\d+\.\d{6,}\.(?:ndjson\.zst|quarantine\.ndjson|remapped\.ndjson|parquet|json)$/.test(name);

/** A bucket's link, or a temporary name for one. */
const isLinkedBucket: IsOwn = (name) =>
  (name.endsWith(".parquet") && isBucketName(name.slice(0, -".parquet".length))) ||
  /^\.\d+\.part$/.test(name);

/** The names of files in a run's own folders. runvault made nothing else there, and removes nothing else. */
export const ownFiles = {
  data: replaced(isWork),
  quarantine: replaced(isWork),
  pending: replaced((name) => name === "journal.ndjson" || isWork(name)),
  // DuckDB's temporary files have such names
  staging: (name: string) => isWork(name) || name.startsWith("duckdb_temp_"),
  tables: isLinkedBucket,
} satisfies Record<string, IsOwn>;

/** The folders that belong to one run alone, with the names of files there. */
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
 * The folders of uncommitted work on a run: this job's and, if those are in a scratch folder, those in the archive,
 * where a job without one may have been stopped.
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
  /** What belongs in the subfolder of this name; undefined if none does. */
  readonly folder: (name: string) => FolderShape | undefined;
}

const none: IsOwn = () => false;

function files(isFile: IsOwn): FolderShape {
  return { isFile, folder: () => undefined };
}

/** One folder per instance, named after its id. */
function byInstance(shape: FolderShape, isFile: IsOwn = none): FolderShape {
  return { isFile, folder: (name) => (isPathName(name) ? shape : undefined) };
}

/** One folder per instance with one folder per run. */
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

/** A file of this kind, or its temporary replacement. */
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

/** The whole archive from its root: every name that runvault gives. */
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
