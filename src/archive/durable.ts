import { constants } from "node:fs";
import { access, mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Writes all bytes to a new file and has the disk keep them. */
export async function writeSynced(file: string, bytes: Uint8Array | readonly Uint8Array[]): Promise<void> {
  const handle = await open(file, "w");
  try {
    const parts = bytes instanceof Uint8Array ? [bytes] : bytes;
    for (const part of parts) await handle.writeFile(part);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** Replaces `file` as a whole: written aside, synced, renamed over, the folder synced. A reader sees old or new. */
export async function replaceFile(file: string, bytes: Uint8Array, beforeRename?: () => void): Promise<void> {
  const folder = dirname(file);
  await makeFolder(folder);
  const aside = join(folder, `.${basename(file)}.${process.pid}.part`);
  try {
    await writeSynced(aside, bytes);
    beforeRename?.();
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/**
 * Makes a folder and those above it. On a read-only disk Node's recursive mkdir reports ENOENT, so that the topmost
 * missing folder is then made alone, for the error it really meets.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    if (!isMissing(error)) throw error;
    let missing = folder;
    while (dirname(missing) !== missing && !(await isThere(dirname(missing)))) missing = dirname(missing);
    await mkdir(missing);
    throw error;
  }
}

/** Whether an error of the file system says that a file or folder is not there. */
export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    (error) => !isMissing(error),
  );
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

/** Has the disk keep a file that another writer (DuckDB) closed. */
export async function syncFile(file: string): Promise<void> {
  const handle = await open(file, "r+");
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
