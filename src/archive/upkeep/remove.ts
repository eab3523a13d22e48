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
  /** Hears the named moments of the removal; a test kills the process at each. */
  readonly step?: Step;
}

/**
 * Removes a run from the archive, under its lock: first the manifest, which is the commit, then the files. A kill in
 * between leaves files that nothing refers to; the same call again removes these. A manifest too damaged to be read
 * is no hindrance. Files in the run's folders that are not the archive's stay, and are given. Throws `not_archived` where
 * there is nothing of the run, `locked` where a job works on it, and `archive_damaged` where its path belongs to another
 * run, or is not made of real folders.
 */
export async function removeRun(
  archive: Archive,
  run: RunRef,
  options: RemoveOptions = {},
): Promise<readonly string[]> {
  const { layout, store } = archive;
  const step = options.step ?? (() => {});
  const folders = ownFoldersOf(layout, run);
  // before the lock is taken: its file would be all that is there of a misspelt run
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

/** Looks whether a run can be removed, without its lock. Throws as `removeRun` does. */
export async function requireRemovable(archive: Archive, run: RunRef): Promise<void> {
  const { layout } = archive;
  const manifest = layout.manifestFile(run);
  await requireRealFoldersOf(layout, run);
  requireReplaceable(manifest, await lstatOrNull(manifest));
  if (!(await isThere(archive, run))) throw nothingThere(run);
  await refuseOtherRun(archive, run);
}

/** The run's files, where they are not in the archive's folder. */
async function removeCommitted({ layout, store }: Archive, run: RunRef): Promise<void> {
  for (const folder of ["data", "quarantine"] as const) {
    const prefix = layout.committedKey(run, folder);
    const own = (await store.names(prefix)).filter(ownFiles[folder]);
    if (own.length > 0) await store.remove(own.map((name) => `${prefix}${name}`));
  }
}

/** What readers remember of the run's files, and what kills left of it. */
async function removeCache(layout: Layout, run: RunRef): Promise<void> {
  const file = layout.cacheFile(run);
  if (!(await requireRealFolder(layout, dirname(file)))) return;
  // a folder of this name is somebody else's, and verify tells of it
  if ((await lstatOrNull(file))?.isDirectory() !== true) await rm(file, { force: true });
  await removeAsides(file);
  await removeIfEmpty(dirname(file));
}

/** Ids over 200 bytes are shortened with a hash: should two share a path, only its owner may be removed. */
async function refuseOtherRun({ layout, store }: Archive, run: RunRef): Promise<void> {
  const file = layout.manifestFile(run);
  const owner = await readOwner(store, layout.keyOf(file));
  if (owner === null || (owner.instanceId === run.instanceId && owner.runId === run.runId)) return;
  // ids that do not lead here are damage, not another run
  if (layout.manifestFile(owner) !== file) return;
  throw new RunvaultError("archive_damaged", `the path belongs to ${owner.instanceId}/${owner.runId}`, {
    place: { file, instance: run.instanceId, run: run.runId },
  });
}

/** The ids that a manifest file holds; null where it is missing, is no file, or says none. */
async function readOwner(store: Store, key: string): Promise<RunRef | null> {
  try {
    const bytes = await store.get(key, mostBytes.manifest);
    if (bytes === null) return null;
    const { instanceId, runId } = parseJson(bytes.toString("utf8")) as Partial<RunRef>;
    return typeof instanceId === "string" && typeof runId === "string" ? { instanceId, runId } : null;
  } catch (error) {
    if (error instanceof RunvaultError && error.code !== "archive_damaged") throw error;
    // not JSON, or null: a damaged manifest names nobody
    return null;
  }
}

/** Whether there is anything of a run: folders that hold only what is not the archive's are not. */
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
