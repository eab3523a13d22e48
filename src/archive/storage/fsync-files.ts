import { constants } from "node:fs";
import { chmod, copyFile, link, lstat, open, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { tolerated } from "../../model/make-folder.ts";

/** Writes all bytes to a new file with these permissions, and syncs it to disk. */
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
 * Replaces `file` as a whole: written aside, synced, renamed, the folder synced. A reader sees the old or the new one.
 * Its folder must exist.
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

/** The same for expendable files: a reader sees the old or the new one, and after a power cut perhaps neither. */
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

/** Writes bytes to a hidden name next to a file, and syncs them. Returns the name, which the caller removes. */
export async function writeAside(file: string, bytes: Uint8Array, mode: number): Promise<string> {
  const aside = asideOf(file);
  await writeSynced(aside, bytes, mode);
  return aside;
}

/** Sets a file's permissions, if the file system has any. */
export async function setFileBits(file: string, mode: number): Promise<void> {
  await tolerated(chmod(file, mode));
}

/** Removes leftovers of killed attempts to replace a file. Only if no other writer may be active. */
export async function removeAsides(file: string): Promise<void> {
  const folder = dirname(file);
  for (const name of await readdir(folder)) {
    if (asideOwner(name) === basename(file)) await rm(join(folder, name), { force: true });
  }
}

/** Size of a file in bytes, of a link itself; null if there is none. */
export async function sizeOf(file: string): Promise<number | null> {
  try {
    return (await lstat(file)).size;
  } catch (error) {
    if (isMissing(error)) return null;
    throw RunvaultError.from(error, { place: { file } });
  }
}

/** A hidden name next to a file, unique to this writer. */
function asideOf(file: string): string {
  return join(dirname(file), `.${basename(file)}.${process.pid}-${++asides}.part`);
}
let asides = 0;

/** The file that this temporary name was to replace; null for any other name. */
export function asideOwner(name: string): string | null {
  return /^\.(.+)\.\d+-\d+\.part$/.exec(name)?.[1] ?? null;
}

/** A second name for a file, or a copy if the file system has no hard links. Fails if the name is taken. */
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

/** Errors of file systems without hard links, or with none left for this file. */
const withoutLinks: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "EXDEV",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
]);

/**
 * Moves a file to another folder, with these permissions if given. Across file systems a synced copy is renamed into
 * place and the original stays: false. The names are durable once the folder is synced.
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

/** Removes a folder if it is empty. */
export async function removeIfEmpty(folder: string): Promise<void> {
  try {
    await rmdir(folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // POSIX allows either code for a folder that is not empty
    if (code !== "ENOTEMPTY" && code !== "EEXIST" && !isMissing(error)) throw error;
  }
}

/** Whether an error of the file system says that a file or folder is not there. */
export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Syncs the names in a folder to disk. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Syncs a file that another writer (DuckDB) closed, with these permissions if given. */
export async function syncFile(file: string, mode?: number): Promise<void> {
  const handle = await open(file, "r+");
  try {
    if (mode !== undefined) await tolerated(handle.chmod(mode));
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
