import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { RunRef } from "../../model/source.ts";
import { notArchived } from "../../model/usual-errors.ts";
import type { Archive } from "../archive.ts";
import type { Layout } from "../layout.ts";
import { lockRun } from "../lock.ts";
import { mostBytes } from "../storage/archive-file.ts";
import { removeAsides, removeIfEmpty } from "../storage/fsync-files.ts";
import { ownFiles, ownFoldersOf } from "../storage/own-names.ts";
import {
  lstatOrNull,
  requireRealFolder,
  requireRealFoldersOf,
  requireReplaceable,
} from "../storage/real-folder.ts";
import type { Store } from "../storage/store.ts";
import type { Step } from "../write/run-journal.ts";
import { removeOwnFolder } from "./remove-own.ts";

export interface RemoveOptions {
  /** Called at named moments of the removal; a test kills the process at each. */
  readonly step?: Step;
}

/**
 * Removes a run from the archive, under its lock: first the manifest, which is the commit, then the files. A kill in
 * between leaves unreferenced files, which the same call removes later. An unreadable manifest does not prevent
 * removal. Foreign files in the run's folders stay, and are returned. Throws `not_archived` if there is nothing of the
 * run, `locked` if a job is working on it, and `archive_damaged` if its path belongs to another run or is not made of
 * real folders.
 */
export async function removeRun(
  archive: Archive,
  run: RunRef,
  options: RemoveOptions = {},
): Promise<readonly string[]> {
  const { layout, store } = archive;
  const step = options.step ?? (() => {});
  const folders = ownFoldersOf(layout, run);
  // before the lock: its file would be the only trace of a misspelt run
  await requireRemovable(archive, run);
  await using _lock = await lockRun(layout, run);
  await requireRemovable(archive, run);
  const foreign: string[] = [];
  try {
    await store.remove([layout.keyOf(layout.manifestFile(run))]);
    step("remove-manifest");
    for (const { folder, isOwn } of folders) {
      for (const name of await removeOwnFolder(layout, folder, isOwn)) foreign.push(join(folder, name));
      step("remove-folder");
    }
    await removeCommitted(archive, run);
    await removeCache(layout, run);
    return foreign;
  } catch (error) {
    throw RunvaultError.from(error, { place: { instance: run.instanceId, run: run.runId } });
  }
}

/** Checks whether a run can be removed, without its lock. Throws like `removeRun`. */
export async function requireRemovable(archive: Archive, run: RunRef): Promise<void> {
  const { layout } = archive;
  const manifest = layout.manifestFile(run);
  await requireRealFoldersOf(layout, run);
  requireReplaceable(manifest, await lstatOrNull(manifest));
  if (!(await isThere(archive, run))) throw nothingThere(run);
  await refuseOtherRun(archive, run);
}

/** The run's files, if they are not in the archive's folder. */
async function removeCommitted({ layout, store }: Archive, run: RunRef): Promise<void> {
  for (const folder of ["data", "quarantine"] as const) {
    const prefix = layout.committedKey(run, folder);
    const own = (await store.names(prefix)).filter(ownFiles[folder]);
    if (own.length > 0) await store.remove(own.map((name) => `${prefix}${name}`));
  }
}

/** Readers' cache of the run's files, and leftovers of it. */
async function removeCache(layout: Layout, run: RunRef): Promise<void> {
  const file = layout.cacheFile(run);
  if (!(await requireRealFolder(layout, dirname(file)))) return;
  // a folder of this name is foreign, and verify reports it
  if ((await lstatOrNull(file))?.isDirectory() !== true) await rm(file, { force: true });
  await removeAsides(file);
  await removeIfEmpty(dirname(file));
}

/** Ids over 200 bytes are shortened with a hash: if two share a path, only its owner may be removed. */
async function refuseOtherRun({ layout, store }: Archive, run: RunRef): Promise<void> {
  const file = layout.manifestFile(run);
  const owner = await readOwner(store, layout.keyOf(file));
  if (owner === null || (owner.instanceId === run.instanceId && owner.runId === run.runId)) return;
  // ids that lead elsewhere are damage, not another run
  if (layout.manifestFile(owner) !== file) return;
  throw new RunvaultError("archive_damaged", `the path belongs to ${owner.instanceId}/${owner.runId}`, {
    place: { file, instance: run.instanceId, run: run.runId },
  });
}

/** The ids in a manifest file; null if it is missing, not a file, or has none. */
async function readOwner(store: Store, key: string): Promise<RunRef | null> {
  try {
    const bytes = await store.get(key, mostBytes.manifest);
    if (bytes === null) return null;
    const { instanceId, runId } = parseJson(bytes.toString("utf8")) as Partial<RunRef>;
    return typeof instanceId === "string" && typeof runId === "string" ? { instanceId, runId } : null;
  } catch (error) {
    if (error instanceof RunvaultError && error.code !== "archive_damaged") throw error;
    // not JSON, or null: a damaged manifest names no run
    return null;
  }
}

/** Whether anything of a run exists; folders with only foreign files do not count. */
async function isThere({ layout, store }: Archive, run: RunRef): Promise<boolean> {
  const manifest = layout.keyOf(layout.manifestFile(run));
  if ((await store.names(`${dirname(manifest)}/`)).includes(basename(manifest))) return true;
  for (const folder of ["data", "quarantine"] as const) {
    if ((await store.names(layout.committedKey(run, folder))).some(ownFiles[folder])) return true;
  }
  for (const { folder, isOwn } of ownFoldersOf(layout, run)) {
    if (!(await requireRealFolder(layout, folder))) continue;
    const names = await readdir(folder);
    if (names.length === 0 || names.some(isOwn)) return true;
  }
  return false;
}

function nothingThere(run: RunRef): RunvaultError {
  return notArchived(run, "the archive holds nothing of this run");
}
