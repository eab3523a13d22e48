import type { Dirent, Stats } from "node:fs";
import { lstat, mkdir, readdir } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { setFolderBits } from "../../model/make-folder.ts";
import type { RunRef } from "../../model/source.ts";
import { isPathName, type Layout } from "../layout.ts";
import { isMissing, syncFolder } from "./fsync-files.ts";
import { foldersOf } from "./own-names.ts";
import { permissionsAt } from "./permissions.ts";
import { makeScratchArea } from "./scratch-area.ts";

// Below an archive's root every part of a path must be a real folder before anything is written, moved, linked or
// removed there: through a symbolic link, a job would work in a foreign folder, and delete in it. The root itself, and
// its parents, may be links: an archive on another disk is reached that way.
//
// A run's folders are checked before its lock is taken and again before its commit, and any folder when it is created
// or cleared; not for each of a job's thousands of files. That leaves a race: a link that replaces a folder while a job
// works in it is followed. This is accepted, because accidental links exist before the job, and someone who creates one
// on purpose can write to the archive anyway. Node has no calls relative to an open folder, so a check for each file
// would only shorten the window.

/** Whether a folder of the archive exists. Throws `archive_damaged` if a part of its path is not a real folder. */
export async function requireRealFolder(layout: Layout, folder: string): Promise<boolean> {
  for (const part of partsBelow(layout, folder)) if (!(await isRealFolder(part))) return false;
  return true;
}

/** Throws `archive_damaged` if an existing part of these folders' paths is not a real folder. */
export async function requireRealFolders(layout: Layout, folders: Iterable<string>): Promise<void> {
  let paths = [...folders].map((folder) => partsBelow(layout, folder));
  // a level at a time: a run has some forty parts, and checking them one by one would take milliseconds
  for (let depth = 0; paths.length > 0; depth++) {
    const level = [...new Set(paths.map((parts) => parts[depth]!))];
    const found = await Promise.all(level.map((part) => lstatOrNull(part)));
    const there = new Set(level.filter((part, index) => isFolder(part, found[index]!)));
    paths = paths.filter((parts) => there.has(parts[depth]!) && depth + 1 < parts.length);
  }
}

/** Throws `archive_damaged` if a job on this run would write or remove outside of real folders. */
export async function requireRealFoldersOf(layout: Layout, run: RunRef): Promise<void> {
  await requireRealFolders(layout, foldersOf(layout, run));
}

/**
 * Creates a folder of the archive and its parents, up to the root, and syncs their names. Throws `archive_damaged` like
 * `requireRealFolder`.
 */
export async function makeRealFolder(layout: Layout, folder: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      if (layout.scratch !== null && layout.isScratch(folder)) await makeScratchArea(layout.scratch);
      for (const part of partsBelow(layout, folder)) await makePart(layout, part);
      return;
    } catch (error) {
      if (!isMissing(error)) throw error;
      // a job on another run may remove the instance's folder just when it is empty
      if (attempt < 10) continue;
      throw new RunvaultError(
        "archive_damaged",
        "this folder cannot be made: the one above it keeps disappearing",
        {
          cause: error,
          place: { file: folder },
          hint: "Find and stop what removes folders of the archive, then run the same command again.",
        },
      );
    }
  }
}

async function makePart(layout: Layout, part: string): Promise<void> {
  if (await isRealFolder(part)) return;
  try {
    await mkdir(part);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // another job created it meanwhile
    await isRealFolder(part);
    return;
  }
  await setFolderBits(part, (await permissionsAt(layout, part)).folder);
  await syncFolder(dirname(part));
}

/**
 * Anything in the place of an instance's folder below `runs/`: a link or, if the instance has data, anything else that
 * is not a folder. Listing manifests must check this: a link would lead to foreign manifests, and nobody would notice
 * one to an empty or missing folder.
 */
export async function misplacedInstances(
  layout: Layout,
): Promise<{ readonly folder: string; readonly error: RunvaultError }[]> {
  const entries = await readdir(layout.runsDir, { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw RunvaultError.from(error, { place: { file: layout.runsDir } });
  });
  const found: { folder: string; error: RunvaultError }[] = [];
  for (const entry of entries) {
    if (entry.isDirectory() || !isPathName(entry.name)) continue;
    if (!entry.isSymbolicLink() && !(await hasData(layout, entry.name))) continue;
    found.push({ folder: entry.name, error: misplacedInstance(layout, entry) });
  }
  return found;
}

/** Whether the instance with this folder has committed runs that are not all removed. */
export async function hasData(layout: Layout, instanceFolder: string): Promise<boolean> {
  return (await lstatOrNull(join(layout.dir, "data", instanceFolder)))?.isDirectory() === true;
}

function misplacedInstance(layout: Layout, entry: Dirent): RunvaultError {
  const error = misplaced(join(layout.runsDir, entry.name), entry, "folder");
  if (entry.isSymbolicLink()) return error;
  const hint = "Restore the folder with the manifests of its runs from a backup: their data is still there.";
  return new RunvaultError("archive_damaged", error.message, { place: error.place, hint });
}

/** Throws `archive_damaged` if something other than a file stands where one is opened for writing. */
export async function requireRealFile(file: string): Promise<void> {
  const found = await lstatOrNull(file);
  if (found !== null && !found.isFile()) throw misplaced(file, found, "file");
}

/** Throws `archive_damaged` if what is in a file's place cannot be replaced by a rename. */
export function requireReplaceable(file: string, found: Stats | null): void {
  if (found?.isDirectory()) throw misplaced(file, found, "file");
}

/** The error for something else in the place of a folder or file of the archive. */
export function misplaced(path: string, found: FileKind, wanted: "folder" | "file"): RunvaultError {
  const isLink = found.isSymbolicLink();
  const what = isLink
    ? "a symbolic link"
    : found.isFile()
      ? "a file"
      : found.isDirectory()
        ? "a folder"
        : "a special file";
  const hint = isLink ? linkHint(wanted) : "Move it out of the archive, then run the same command again.";
  return new RunvaultError("archive_damaged", `this is ${what}, not a ${wanted}`, {
    place: { file: path },
    hint,
  });
}

function linkHint(wanted: "folder" | "file"): string {
  const replace = "Replace the link with what it points to, or remove it.";
  if (wanted === "file") return replace;
  return `${replace} To keep a folder on another disk, mount it in the link's place (mount --bind); for pending/ and staging/ use --scratch; a whole archive may be there, with a link to its root.`;
}

/** Common part of `Stats` and `Dirent`. */
export interface FileKind {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** Like `lstat`; null if there is nothing. */
export async function lstatOrNull(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw RunvaultError.from(error, { place: { file: path } });
  }
}

async function isRealFolder(path: string): Promise<boolean> {
  return isFolder(path, await lstatOrNull(path));
}

/** True for a real folder, false if there is nothing. */
function isFolder(path: string, found: Stats | null): boolean {
  if (found === null) return false;
  if (!found.isDirectory()) throw misplaced(path, found, "folder");
  return true;
}

/**
 * The folders from the one below the root, or from the archive's own in the scratch folder, to `folder`; none for a
 * root.
 */
function partsBelow(layout: Layout, folder: string): string[] {
  const { scratch } = layout;
  const dir = scratch !== null && layout.isScratch(folder) ? dirname(scratch) : layout.dir;
  const names = relative(dir, folder).split(sep);
  // the root may be a link
  if (names[0] === "") return [];
  if (names[0] === "..") {
    throw new RunvaultError("internal", "a path that is not below the archive's root", {
      place: { file: folder },
    });
  }
  return names.map((_, index) => join(dir, ...names.slice(0, index + 1)));
}
