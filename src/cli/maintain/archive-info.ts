import { join, resolve } from "node:path";
import { type Archive, openArchive } from "../../archive/archive.ts";
import type { Layout } from "../../archive/layout.ts";
import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import { attemptText } from "../../archive/manifest/attempt-text.ts";
import { formerBytes } from "../../archive/manifest/former-files.ts";
import { consistentRuns } from "../../archive/manifest/found-runs.ts";
import { type Manifest, type TableState, tableStates } from "../../archive/manifest/manifest.ts";
import { everyFile } from "../../archive/manifest/manifest-files.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import { readSources } from "../../archive/sources.ts";
import { lstatOrNull, requireRealFolder } from "../../archive/storage/real-folder.ts";
import { entriesIn } from "../../archive/verify/verify-places.ts";
import { type PendingWork, pendingWork } from "../../archive/write/pending-work.ts";
import { freeBytes } from "../../extract/fetch/disk-need.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { pendingJson } from "../archive/pending-told.ts";
import { type CommandToCopy, commandsToCopy } from "../output/command-to-copy.ts";
import type { Session } from "../process/session.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
}

/** What there is to say of one instance. */
interface InstanceInfo {
  readonly instanceId: string;
  runs: number;
  rows: number;
  bytes: number;
  newestCommit: string;
}

/** A run of which the latest attempts proved nothing, with the table that has been so longest. */
interface UnprovenRun extends RunRef {
  readonly table: TableName;
  readonly state: TableState;
  readonly since: string;
  readonly reason: string;
  readonly command: string;
}

/** What a person asks of an archive first. Counts and bytes are numbers. */
export interface ArchiveInfo {
  readonly archive: {
    readonly dir: string;
    readonly id: string;
    readonly format: number;
    readonly createdAt: string;
  };
  /** Each with every address at which it was met. */
  readonly sources: readonly { readonly addresses: readonly string[] }[];
  runs: number;
  readonly states: Record<TableState, number>;
  /** Manifests that cannot be read. */
  damaged: number;
  readonly instances: readonly InstanceInfo[];
  /** Rows that readers show, by table. */
  readonly rows: Record<TableName, number>;
  readonly bytes: {
    segments: number;
    parquet: number;
    documents: number;
    quarantine: number;
    /** Files that commits replaced and that are still there for readers. */
    replaced: number;
    pending: number;
    /** What readers remember of files. */
    cache: number;
    /** Records of executions, and what a `rebuild` that was stopped left. */
    jobs: number;
  };
  files: number;
  rowsSetAside: number;
  /** Tables that are not proven, and that the operator keeps as they are. */
  tablesAccepted: number;
  /** Of what nobody has accepted. */
  oldestUnproven: UnprovenRun | null;
  newestCommit: (RunRef & { readonly committedAt: string }) | null;
  readonly pending: readonly ReturnType<typeof pendingJson>[];
  /** Free bytes on the disks that jobs write to. */
  readonly disks: readonly { readonly folder: string; readonly freeBytes: number }[];
}

/** Sums up an archive. A manifest that cannot be read is counted, told, and exit status 5. */
export async function archiveInfo(
  values: Values,
  session: Session,
): Promise<{ info: ArchiveInfo; status: number }> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  return await infoOf(archive, commandsToCopy(values, session), session);
}

async function infoOf(archive: Archive, command: CommandToCopy, session: Session) {
  const { dir, id, format, createdAt, layout } = archive;
  // throws where a folder is a link
  await archive.manifestFiles();
  const statuses: number[] = [];
  const onTrouble = (error: unknown) => void statuses.push(session.failure(error));
  const pending = await pendingWork(archive, onTrouble);
  const instances = new Map<string, InstanceInfo>();
  const info: ArchiveInfo = {
    archive: { dir: resolve(dir), id, format, createdAt },
    sources: (await readSources(archive)).map(({ addresses }) => ({ addresses })),
    runs: 0,
    states: zeroes(tableStates),
    damaged: 0,
    instances: [],
    rows: zeroes(tableNames),
    bytes: {
      ...{ segments: 0, parquet: 0, documents: 0, quarantine: 0, replaced: 0 },
      pending: pending.reduce((sum, { bytes }) => sum + bytes, 0),
      cache: await bytesBelow(layout, join(dir, "cache"), onTrouble),
      jobs: await bytesBelow(layout, layout.jobsDir, onTrouble),
    },
    files: 0,
    rowsSetAside: 0,
    tablesAccepted: 0,
    oldestUnproven: null,
    newestCommit: null,
    pending: pending.map((work: PendingWork) => pendingJson(work, command)),
    disks: await Promise.all(
      layout.disks.map(async (folder) => ({ folder: resolve(folder), freeBytes: await freeBytes(folder) })),
    ),
  };
  for await (const { manifest, damage } of consistentRuns(archive)) {
    session.signal.throwIfAborted();
    if (manifest === null) {
      info.damaged += 1;
      const { message, file, hint } = damage!;
      onTrouble(new RunvaultError("archive_damaged", message, { place: { file }, hint }));
    } else {
      count(info, instances, manifest, command);
      info.bytes.replaced += await formerBytes(archive, manifest);
    }
  }
  const byName = [...instances.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  return { info: { ...info, instances: byName }, status: worstExit(statuses) };
}

function count(
  info: ArchiveInfo,
  instances: Map<string, InstanceInfo>,
  manifest: Manifest,
  command: CommandToCopy,
): void {
  const { instanceId, runId, committedAt, state } = manifest;
  info.runs += 1;
  info.states[state] += 1;
  const own = instances.get(instanceId) ?? { instanceId, runs: 0, rows: 0, bytes: 0, newestCommit: "" };
  instances.set(instanceId, own);
  own.runs += 1;
  if (committedAt > own.newestCommit) own.newestCommit = committedAt;
  if (info.newestCommit === null || committedAt > info.newestCommit.committedAt) {
    info.newestCommit = { instanceId, runId, committedAt };
  }
  for (const { folder, table, file, storedBytes } of everyFile(manifest)) {
    info.files += 1;
    own.bytes += storedBytes;
    const kind = folder === "quarantine" ? folder : table === null ? "documents" : kindOf(file);
    info.bytes[kind] += storedBytes;
  }
  for (const name of tableNames) {
    const table = manifest.tables[name];
    if (table === undefined) continue;
    const rows = table.proven?.certificate?.rows ?? 0;
    own.rows += rows;
    info.rows[name] += rows;
    const { behindSince } = table.attempt;
    info.rowsSetAside += toldView(table).certificate?.quarantined ?? 0;
    if (acceptanceOf(table) !== null) {
      info.tablesAccepted += 1;
      continue;
    }
    if (behindSince === null || (info.oldestUnproven?.since ?? "\uffff") <= behindSince) continue;
    info.oldestUnproven = {
      ...{ instanceId, runId, table: name, state: table.state, since: behindSince },
      reason: attemptText(table) ?? table.state,
      command: command("archive", formatRun(manifest)),
    };
  }
}

function kindOf(file: string): "parquet" | "segments" {
  return file.endsWith(".parquet") ? "parquet" : "segments";
}

function zeroes<N extends string>(names: readonly N[]): Record<N, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<N, number>;
}

/** Bytes of the files in a folder of the archive and in those below. Of what cannot be looked at `onTrouble` is told. */
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
      // gone, where it is not there any more
      else if (entry.isFile()) bytes += (await lstatOrNull(path))?.size ?? 0;
    }
  } catch (error) {
    onTrouble(error);
  }
  return bytes;
}
