import { constants, type Stats } from "node:fs";
import { chmod, lstat, mkdir, open, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { RunvaultError } from "./error.ts";

/** Of a folder that nobody but its owner sees. */
export const privateFolder = 0o700;

/** Of a file that nobody but its owner reads. */
export const privateFile = 0o600;

/**
 * Makes a folder and those above it where they are missing, and has the disk keep their names. A folder that is there keeps
 * its permissions; a new one has those of `mode`, whatever the process's umask, and those above it the usual ones. Goes up
 * the path once and down once: Node's own way never ends where a file system answers ENOENT for a new folder, as /proc and
 * some mounts do. Throws `storage_…` where the disk refuses, and `invalid_argument` where the path cannot be that of a folder.
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
    // the name of a new folder lasts only once the folder above it is on disk
    if (isMade) await keepNames(dirname(part));
  }
  if (missing.length === 0 && (await found(wanted))?.isDirectory() === false) throw notAFolder(wanted);
}

/** True where it was made here; false where another process was first. */
async function makePart(part: string, mode: number | undefined): Promise<boolean> {
  try {
    // never wider than it is to be, not even for a moment
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
    hint: "Name another folder: this is a file, or a link that leads nowhere.",
  });
}

/** What is there, through links; null where nothing is, or a link leads nowhere. */
async function found(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // what else is wrong with the path, making it tells
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG" || code === "ELOOP") return null;
    throw RunvaultError.from(error, { place: { file: path } });
  }
}

async function keepNames(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    // a folder above that may be entered but not read
    if (error.code === "EACCES" || error.code === "EPERM") return null;
    throw error;
  });
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}

/** Gives a folder permissions, and leaves alone that its files are of its own group, which new folders inherit. */
export async function setFolderBits(folder: string, mode: number): Promise<void> {
  const now = (await lstat(folder)).mode & 0o7777;
  const wanted = mode | (now & 0o2000);
  if (now !== wanted) await tolerated(chmod(folder, wanted));
}

/** Waits for a change of permissions; file systems that have none, and files of another owner, stay as they are. */
export async function tolerated(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(code ?? "")) throw error;
  }
}
