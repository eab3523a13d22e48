import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Layout } from "../layout.ts";
import { removeIfEmpty } from "../storage/fsync-files.ts";
import type { IsOwn } from "../storage/own-names.ts";
import { requireRealFolder } from "../storage/real-folder.ts";

/**
 * Removes the files in a folder of the archive that have names of our own, but for those kept. Whatever else is there
 * is its owner's and stays: files of other names, and folders of any. Of a symbolic link under such a name the link goes,
 * not what it points to. Gives the names that stay and are not kept. Throws `archive_damaged` where a part of the path
 * is no real folder.
 */
export async function removeOwnFiles(
  layout: Layout,
  folder: string,
  isOwn: IsOwn,
  kept: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  if (!(await requireRealFolder(layout, folder))) return [];
  const foreign: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (kept.has(entry.name)) continue;
    if (isOwn(entry.name) && !entry.isDirectory()) await rm(join(folder, entry.name), { force: true });
    else foreign.push(entry.name);
  }
  return foreign;
}

/** The same, then the folder and the one above it, each where nothing is left in it. */
export async function removeOwnFolder(layout: Layout, folder: string, isOwn: IsOwn): Promise<string[]> {
  const foreign = await removeOwnFiles(layout, folder, isOwn);
  await removeIfEmpty(folder);
  await removeIfEmpty(dirname(folder));
  return foreign;
}
