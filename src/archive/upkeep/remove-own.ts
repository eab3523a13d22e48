import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Layout } from "../layout.ts";
import { removeIfEmpty } from "../storage/fsync-files.ts";
import type { IsOwn } from "../storage/own-names.ts";
import { requireRealFolder } from "../storage/real-folder.ts";

/**
 * Removes the files in a folder of the archive that have our own names, except those to keep. Everything else belongs
 * to its owner and stays: files with other names, and all folders. A symbolic link with such a name is removed, not its
 * target. Returns foreign names that stay. Throws `archive_damaged` if a part of the path is not a real folder.
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

/** The same, then removes the folder and its parent if they are empty. */
export async function removeOwnFolder(layout: Layout, folder: string, isOwn: IsOwn): Promise<string[]> {
  const foreign = await removeOwnFiles(layout, folder, isOwn);
  await removeIfEmpty(folder);
  await removeIfEmpty(dirname(folder));
  return foreign;
}
