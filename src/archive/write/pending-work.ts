import { join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import { isPathName, type Layout } from "../layout.ts";
import { mostBytes, openArchiveFile } from "../storage/archive-file.ts";
import { isMissing } from "../storage/fsync-files.ts";
import { ownFiles } from "../storage/own-names.ts";
import { lstatOrNull, misplaced } from "../storage/real-folder.ts";
import { entriesIn } from "../verify/verify-places.ts";

/** Uncommitted work on a run, from a stopped or running job. */
export interface PendingWork extends RunRef {
  /** Whether readers already see an earlier generation of the run. */
  readonly isCommitted: boolean;
  readonly segments: number;
  /** Bytes of all files that a commit would use. */
  readonly bytes: number;
  /** When a job last wrote there. */
  readonly changedAt: string;
  /**
   * What continues it: `rebuild` if there is nothing to fetch, `remap` for a rebuild with another profile, which starts
   * over.
   */
  readonly by: "archive" | "rebuild" | "remap";
}

/**
 * All pending work, by instance and run, in the scratch folder and the archive. Found by names and sizes of files and
 * each journal's first line; the next job decides what counts. Leftovers of a finished commit are not pending. Does not
 * look behind a link in a folder's place: `onMisplaced` is called for it.
 */
export async function pendingWork(
  archive: Archive,
  onMisplaced: (error: RunvaultError) => void,
): Promise<PendingWork[]> {
  const { layout } = archive;
  const found = new Map<string, PendingWork>();
  for (const place of new Set([layout, layout.withoutScratch()])) {
    const root = await lstatOrNull(place.pendingRoot);
    if (root === null) continue;
    if (!root.isDirectory()) {
      onMisplaced(misplaced(place.pendingRoot, root, "folder"));
      continue;
    }
    for (const instance of await foldersIn(place.pendingRoot, onMisplaced)) {
      for (const name of await foldersIn(join(place.pendingRoot, instance), onMisplaced)) {
        const work = await workIn(archive, place, instance, name);
        if (work === null) continue;
        const key = join(instance, name);
        const other = found.get(key);
        found.set(key, other === undefined ? work : together(work, other));
      }
    }
  }
  return [...found.values()];
}

async function foldersIn(folder: string, onMisplaced: (error: RunvaultError) => void): Promise<string[]> {
  const entries = await entriesIn(folder);
  for (const entry of entries) {
    if (entry.isSymbolicLink() && isPathName(entry.name))
      onMisplaced(misplaced(join(folder, entry.name), entry, "folder"));
  }
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function workIn(
  archive: Archive,
  layout: Layout,
  instance: string,
  name: string,
): Promise<PendingWork | null> {
  const folder = join(layout.pendingRoot, instance, name);
  const files = (await entriesIn(folder)).filter((entry) => entry.isFile() && ownFiles.pending(entry.name));
  if (files.length === 0) return null;
  const journal = join(folder, "journal.ndjson");
  const head = await headOf(layout, journal);
  // a long id is shortened in folder names
  const isNamed = head !== null && layout.pendingDir(head) === folder;
  const run: RunRef = isNamed
    ? { instanceId: head.instanceId, runId: head.runId }
    : { instanceId: layout.idOf(instance) ?? instance, runId: layout.idOf(name) ?? name };
  // an unreadable manifest is reported elsewhere
  const committed = await archive.manifest(run).catch(() => null);
  // a journal of another run, or of an impossible generation, says nothing about the files beside it
  const isDone = isNamed && head.generation >= 1 && head.generation <= (committed?.generation ?? 0);
  if (isDone) return null;
  let bytes = 0;
  let changedMs = 0;
  for (const file of files) {
    const path = join(folder, file.name);
    // a running job may remove its files
    const found = await lstatOrNull(path);
    if (path !== journal) bytes += found?.size ?? 0;
    changedMs = Math.max(changedMs, found?.mtimeMs ?? 0);
  }
  const count = (suffix: string) => files.filter((file) => file.name.endsWith(suffix)).length;
  const segments = count(".ndjson.zst");
  const isParquetAlone = segments === 0 && count(".parquet") > 0;
  return {
    ...run,
    isCommitted: committed !== null,
    segments,
    bytes,
    changedAt: new Date(changedMs).toISOString(),
    by: committed === null ? "archive" : head?.remaps ? "remap" : isParquetAlone ? "rebuild" : "archive",
  };
}

function together(one: PendingWork, other: PendingWork): PendingWork {
  return {
    ...one,
    segments: one.segments + other.segments,
    bytes: one.bytes + other.bytes,
    changedAt: one.changedAt > other.changedAt ? one.changedAt : other.changedAt,
    by: one.by === other.by ? one.by : "archive",
  };
}

/** Longer than any first line of a journal. */
const headBytes = 16 * 1024;

/** The first line of a journal; null if it cannot be read. */
async function headOf(
  layout: Layout,
  journal: string,
): Promise<(RunRef & { generation: number; remaps: boolean }) | null> {
  try {
    const { handle } = await openArchiveFile(layout, journal, mostBytes.journal);
    await using _ = { [Symbol.asyncDispose]: () => handle.close() };
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    const [line = ""] = buffer.toString("utf8", 0, bytesRead).split("\n", 1);
    const { instanceId, runId, generation, remaps } = parseJson(line) as Record<string, unknown>;
    if (typeof instanceId !== "string" || typeof runId !== "string" || typeof generation !== "number")
      return null;
    return { instanceId, runId, generation, remaps: remaps === true };
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError || error instanceof TypeError) return null;
    if (error instanceof RunvaultError && error.code === "archive_damaged") return null;
    throw error;
  }
}
