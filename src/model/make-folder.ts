import { constants, type Stats } from "node:fs";
import { chmod, lstat, mkdir, open, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { RunvaultError } from "./error.ts";

/** Mode of a folder that only its owner can see. */
export const privateFolder = 0o700;

/** Mode of a file that only its owner can read. */
export const privateFile = 0o600;

/**
 * Creates a folder and missing parents, and syncs their names. An existing folder keeps its permissions; a new one gets
 * `mode`, whatever the process's umask, and its parents the default. Goes up the path once and down once: Node's own
 * way never ends if a file system answers ENOENT for a new folder, as /proc and some mounts do. Throws `storage_…` if
 * the disk refuses, and `invalid_argument` if the path cannot be a folder.
 */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  const wanted = resolve(folder);
  const missing: string[] = [];
  for (let part = wanted; (await found(part)) === null && dirname(part) !== part; part = dirname(part)) {
    missing.push(part);
  }
  for (const part of missing.reverse()) {
    const isMade = await makePart(part, part === wanted ? mode : undefined);
    if (isMade && part === wanted && mode !== undefined) await setFolderBits(part, mode);
    // a new folder's name is durable only once its parent is synced
    if (isMade) await keepNames(dirname(part));
  }
  if (missing.length === 0 && (await found(wanted))?.isDirectory() === false) throw notAFolder(wanted);
}

/** True if it was created here; false if another process was first. */
async function makePart(part: string, mode: number | undefined): Promise<boolean> {
  try {
    // never with wider permissions, not even for a moment
    await mkdir(part, mode === undefined ? {} : { mode });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") {
      if ((await found(part))?.isDirectory()) return false;
      throw notAFolder(part, error);
    }
    if (code === "ENOTDIR") throw notAFolder(dirname(part), error);
    if (code === "ENAMETOOLONG" || code === "EINVAL" || code === "ELOOP") {
      throw new RunvaultError("invalid_argument", `a folder cannot have this name (${code})`, {
        cause: error,
        place: { file: part },
      });
    }
    if (code === "ENOENT") {
      throw new RunvaultError("storage_failed", "the file system does not allow a new folder here", {
        cause: error,
        place: { file: part },
        hint: "Name a folder on a writable disk; a network disk may be offline.",
      });
    }
    throw RunvaultError.from(error, { place: { file: part } });
  }
}

function notAFolder(path: string, cause?: unknown): RunvaultError {
  return new RunvaultError("invalid_argument", "this is not a folder", {
    cause,
    place: { file: path },
    hint: "Name another folder: this is a file or a broken link.",
  });
}

/** What exists there, following links; null for nothing or a broken link. */
async function found(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // creating it reports other problems with the path
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG" || code === "ELOOP") return null;
    throw RunvaultError.from(error, { place: { file: path } });
  }
}

async function keepNames(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    // a parent that can be entered but not read
    if (error.code === "EACCES" || error.code === "EPERM") return null;
    throw error;
  });
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}

/** Sets a folder's permissions, but keeps its setgid bit, by which new files inherit the group. */
export async function setFolderBits(folder: string, mode: number): Promise<void> {
  const now = (await lstat(folder)).mode & 0o7777;
  const wanted = mode | (now & 0o2000);
  if (now !== wanted) await tolerated(chmod(folder, wanted));
}

/** Waits for a change of permissions; ignores file systems without permissions, and files of other owners. */
export async function tolerated(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(code ?? "")) throw error;
  }
}
