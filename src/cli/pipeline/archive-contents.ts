import { join, resolve } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import type { Layout } from "../../archive/layout.ts";
import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import { formerBytes } from "../../archive/manifest/former-files.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { everyFile } from "../../archive/manifest/manifest-files.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import { readSources } from "../../archive/sources.ts";
import { lstatOrNull, requireRealFolder } from "../../archive/storage/real-folder.ts";
import { entriesIn } from "../../archive/verify/verify-places.ts";
import { type PendingWork, pendingWork } from "../../archive/write/pending-work.ts";
import { freeBytes } from "../../extract/fetch/disk-need.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { pendingJson } from "../archive/pending-told.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";

/** The contents of one instance. */
interface InstanceContents {
  readonly instanceId: string;
  runs: number;
  rows: number;
  bytes: number;
  newestCommit: string;
}

/** The contents of an archive. Counts and bytes are numbers. */
export interface ArchiveContents {
  readonly format: number;
  readonly createdAt: string;
  /** Each with every address it was reached at. */
  readonly sources: readonly { readonly addresses: readonly string[] }[];
  /** Sorted by name. */
  readonly instances: InstanceContents[];
  /** Rows that readers show, by table. */
  readonly rows: Record<TableName, number>;
  readonly bytes: {
    segments: number;
    parquet: number;
    documents: number;
    quarantine: number;
    /** Replaced files that are kept for current readers. */
    replaced: number;
    pending: number;
    /** What readers cache about files. */
    cache: number;
    /** Records of executions, and leftovers of a stopped `rebuild`. */
    jobs: number;
  };
  files: number;
  rowsSetAside: number;
  /** Unproven tables that the operator accepted. */
  tablesAccepted: number;
  newestCommit: (RunRef & { readonly committedAt: string }) | null;
  readonly pending: readonly ReturnType<typeof pendingJson>[];
  /** Free bytes on the disks that jobs write to. */
  readonly disks: readonly { readonly folder: string; readonly freeBytes: number }[];
}

/** Adds up an archive's contents from manifests that the caller passes in. */
export class ContentsCount {
  readonly contents: ArchiveContents;
  readonly #archive: Archive;

  private constructor(archive: Archive, contents: ArchiveContents) {
    this.#archive = archive;
    this.contents = contents;
  }

  /** Looks at everything but the manifests. Leaves out what cannot be read and passes the error to `onTrouble`. */
  static async begin(
    archive: Archive,
    command: CommandToCopy,
    onTrouble: (error: unknown) => void,
  ): Promise<ContentsCount> {
    const { dir, format, createdAt, layout } = archive;
    const pending = await pendingWork(archive, onTrouble);
    return new ContentsCount(archive, {
      ...{ format, createdAt },
      sources: (await readSources(archive)).map(({ addresses }) => ({ addresses })),
      instances: [],
      rows: Object.fromEntries(tableNames.map((name) => [name, 0])) as Record<TableName, number>,
      bytes: {
        ...{ segments: 0, parquet: 0, documents: 0, quarantine: 0, replaced: 0 },
        pending: pending.reduce((sum, { bytes }) => sum + bytes, 0),
        cache: await bytesBelow(layout, join(dir, "cache"), onTrouble),
        jobs: await bytesBelow(layout, layout.jobsDir, onTrouble),
      },
      files: 0,
      rowsSetAside: 0,
      tablesAccepted: 0,
      newestCommit: null,
      pending: pending.map((work: PendingWork) => pendingJson(work, command)),
      disks: await Promise.all(
        layout.disks.map(async (folder) => ({ folder: resolve(folder), freeBytes: await freeBytes(folder) })),
      ),
    });
  }

  async add(manifest: Manifest): Promise<void> {
    const { contents } = this;
    const { instanceId, runId, committedAt } = manifest;
    const own = this.#instance(instanceId);
    own.runs += 1;
    if (committedAt > own.newestCommit) own.newestCommit = committedAt;
    if (contents.newestCommit === null || committedAt > contents.newestCommit.committedAt) {
      contents.newestCommit = { instanceId, runId, committedAt };
    }
    for (const { folder, table, file, storedBytes } of everyFile(manifest)) {
      contents.files += 1;
      own.bytes += storedBytes;
      const kind = folder === "quarantine" ? folder : table === null ? "documents" : kindOf(file);
      contents.bytes[kind] += storedBytes;
    }
    for (const name of tableNames) {
      const table = manifest.tables[name];
      if (table === undefined) continue;
      const rows = table.proven?.certificate?.rows ?? 0;
      own.rows += rows;
      contents.rows[name] += rows;
      contents.rowsSetAside += toldView(table).certificate?.quarantined ?? 0;
      if (acceptanceOf(table) !== null) contents.tablesAccepted += 1;
    }
    contents.bytes.replaced += await formerBytes(this.#archive, manifest);
  }

  #instance(instanceId: string): InstanceContents {
    const { instances } = this.contents;
    const at = instances.findIndex((one) => one.instanceId >= instanceId);
    if (instances[at]?.instanceId === instanceId) return instances[at];
    const own = { instanceId, runs: 0, rows: 0, bytes: 0, newestCommit: "" };
    instances.splice(at < 0 ? instances.length : at, 0, own);
    return own;
  }
}

function kindOf(file: string): "parquet" | "segments" {
  return file.endsWith(".parquet") ? "parquet" : "segments";
}

/** Bytes of the files in and below a folder of the archive. Passes errors to `onTrouble`. */
async function bytesBelow(
  layout: Layout,
  folder: string,
  onTrouble: (error: unknown) => void,
): Promise<number> {
  let bytes = 0;
  try {
    if (!(await requireRealFolder(layout, folder))) return 0;
    for (const entry of await entriesIn(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) bytes += await bytesBelow(layout, path, onTrouble);
      // 0 if it was removed meanwhile
      else if (entry.isFile()) bytes += (await lstatOrNull(path))?.size ?? 0;
    }
  } catch (error) {
    onTrouble(error);
  }
  return bytes;
}
