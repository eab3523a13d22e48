import { constants } from "node:fs";
import { chmod, copyFile, link, lstat, open, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { tolerated } from "../../model/make-folder.ts";

/** Writes all bytes to a new file with these permissions, and has the disk keep them. */
export async function writeSynced(
  file: string,
  bytes: Uint8Array | readonly Uint8Array[],
  mode: number,
): Promise<void> {
  const handle = await open(file, "w", mode);
  try {
    await tolerated(handle.chmod(mode));
    const parts = bytes instanceof Uint8Array ? [bytes] : bytes;
    for (const part of parts) await handle.writeFile(part);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/**
 * Replaces `file` as a whole: written aside, synced, renamed over, the folder synced. A reader sees old or new. Its folder
 * has to be there.
 */
export async function replaceFile(
  file: string,
  bytes: Uint8Array,
  mode: number,
  beforeRename?: () => void,
): Promise<void> {
  const aside = asideOf(file);
  try {
    await writeSynced(aside, bytes, mode);
    beforeRename?.();
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  await syncFolder(dirname(file));
}

/** The same for what may be lost: a reader sees old or new, and after a loss of power perhaps neither. */
export async function replaceUnsynced(file: string, bytes: Uint8Array, mode: number): Promise<void> {
  const aside = asideOf(file);
  try {
    await writeFile(aside, bytes, { mode });
    await tolerated(chmod(aside, mode));
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}

/** Writes bytes to a hidden name beside a file, and has the disk keep them. Gives the name, which the caller removes. */
export async function writeAside(file: string, bytes: Uint8Array, mode: number): Promise<string> {
  const aside = asideOf(file);
  await writeSynced(aside, bytes, mode);
  return aside;
}

/** Sets the permissions of a file, where the file system has any. */
export async function setFileBits(file: string, mode: number): Promise<void> {
  await tolerated(chmod(file, mode));
}

/** Removes what kills left of earlier attempts to replace a file. Only where no other writer may be at it. */
export async function removeAsides(file: string): Promise<void> {
  const folder = dirname(file);
  for (const name of await readdir(folder)) {
    if (asideOwner(name) === basename(file)) await rm(join(folder, name), { force: true });
  }
}

/** Size of a file in bytes, of a link its own; null where there is none. */
export async function sizeOf(file: string): Promise<number | null> {
  try {
    return (await lstat(file)).size;
  } catch (error) {
    if (isMissing(error)) return null;
    throw RunvaultError.from(error, { place: { file } });
  }
}

/** A hidden name beside a file, no other writer's. */
function asideOf(file: string): string {
  return join(dirname(file), `.${basename(file)}.${process.pid}-${++asides}.part`);
}
let asides = 0;

/** The name of the file that one under this name was to replace; null for any other name. */
export function asideOwner(name: string): string | null {
  return /^\.(.+)\.\d+-\d+\.part$/.exec(name)?.[1] ?? null;
}

/** A second name for a file, or a copy where the file system has no hard links. Fails where the name is taken. */
export async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
  }
}

/** Whether an error says that a file cannot have a second name here. */
export function hasNoLinks(error: unknown): boolean {
  return withoutLinks.has((error as NodeJS.ErrnoException | null)?.code);
}

/** What file systems say that have no hard links, or none left for this file. */
const withoutLinks: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "EXDEV",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
]);

/**
 * Moves a file to another folder, with these permissions where they are given. Where that is on another file system, a copy takes its place, by
 * a rename, once it is on disk, and the file itself stays: false. The names in the folder last once it is synced.
 */
export async function moveFile(from: string, to: string, mode?: number): Promise<boolean> {
  if (mode !== undefined) await setFileBits(from, mode);
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
  }
  const aside = asideOf(to);
  try {
    await copyFile(from, aside, constants.COPYFILE_EXCL);
    await syncFile(aside, mode);
    await rename(aside, to);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  return false;
}

/** Removes a folder where nothing is in it. */
export async function removeIfEmpty(folder: string): Promise<void> {
  try {
    await rmdir(folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // by POSIX a folder that is not empty may be called either
    if (code !== "ENOTEMPTY" && code !== "EEXIST" && !isMissing(error)) throw error;
  }
}

/** Whether an error of the file system says that a file or folder is not there. */
export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Has the disk keep the names in a folder. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Has the disk keep a file that another writer (DuckDB) closed, with these permissions where they are given. */
export async function syncFile(file: string, mode?: number): Promise<void> {
  const handle = await open(file, "r+");
  try {
    if (mode !== undefined) await tolerated(handle.chmod(mode));
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
