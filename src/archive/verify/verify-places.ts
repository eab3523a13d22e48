import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { exit, RunvaultError } from "../../model/error.ts";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import type { Archive } from "../archive.ts";
import type { Layout } from "../layout.ts";
import { isMissing } from "../storage/fsync-files.ts";
import { archiveShape, type FolderShape, foldersOf, ownFoldersOf } from "../storage/own-names.ts";
import { hasData, lstatOrNull, misplaced } from "../storage/real-folder.ts";
import type { VerifyCheck } from "./verify-report.ts";

export interface PlacesReport {
  readonly checks: readonly Omit<VerifyCheck, "run" | "table">[];
  readonly damaged: boolean;
  readonly unproven: boolean;
  /** Exit status: damaged before incomplete before done. */
  readonly exit: number;
}

/**
 * Looks for foreign things in an archive's folders; with `runs`, only on their paths.
 *
 * `damaged`: a symbolic link, or anything else, in the place of a folder or file of the archive: jobs refuse to work
 * there. `unproven`: foreign Parquet among a table's: the archive is unchanged, but globs read unproven rows. `notice`:
 * any other foreign thing, which is harmless and left alone.
 */
export async function verifyPlaces(archive: Archive, runs?: readonly RunRef[]): Promise<PlacesReport> {
  const { layout } = archive;
  const concerned = runs === undefined ? () => true : onPathsOf(layout, runs);
  const checks: Omit<VerifyCheck, "run" | "table">[] = [];
  const globbed: string[] = [];
  const foreign: string[] = [];
  for await (const { path, entry, wanted } of straysIn(layout, layout.dir, archiveShape, concerned)) {
    if (wanted !== null) {
      const { message, hint } = misplaced(path, entry, wanted);
      checks.push(checkOf("places", "damaged", `${message}. ${hint}`, [path]));
      continue;
    }
    const parquet = await parquetIn(layout, path, entry);
    for (const file of parquet) globbed.push(file);
    if (parquet.length === 0) foreign.push(path);
  }
  if (checks.length === 0) checks.push(checkOf("places", "ok", "no links, and everything in its place"));
  if (globbed.length > 0) {
    const detail = `${countText(globbed.length, "Parquet file")} in tables/ that the archive did not make: a glob over the table also reads these rows; move them out of tables/`;
    checks.push(checkOf("foreign", "unproven", detail, globbed));
  }
  if (foreign.length > 0) {
    const detail = `${countText(foreign.length, "path")} that the archive did not make and leaves alone`;
    checks.push(checkOf("foreign", "notice", detail, foreign));
  }
  const damaged = checks.some(({ level }) => level === "damaged");
  const unproven = checks.some(({ level }) => level === "unproven");
  const status = damaged ? exit.damaged : unproven ? exit.incomplete : exit.done;
  return { checks, damaged, unproven, exit: status };

  function checkOf(
    check: "places" | "foreign",
    level: VerifyCheck["level"],
    detail: string,
    paths: readonly string[] = [],
  ) {
    const files = paths.map((path) => relative(layout.dir, path));
    return { check, level, ok: level === "ok" || level === "notice", detail, files };
  }
}

/** Something in a folder of the archive that the archive did not make. */
interface Stray {
  readonly path: string;
  readonly entry: Dirent;
  /** What belongs in its place; null for nothing. */
  readonly wanted: "folder" | "file" | null;
}

async function* straysIn(
  layout: Layout,
  folder: string,
  shape: FolderShape,
  concerned: (path: string) => boolean,
): AsyncGenerator<Stray> {
  for (const entry of await entriesIn(folder)) {
    const path = join(folder, entry.name);
    if (!concerned(path)) continue;
    const inside = shape.folder(entry.name);
    if (inside !== undefined && entry.isDirectory()) yield* straysIn(layout, path, inside, concerned);
    // a file's name may look like that of an instance or run: it is only in the way of existing ones
    else if (inside !== undefined && (entry.isSymbolicLink() || (await isTaken(layout, path))))
      yield { path, entry, wanted: "folder" };
    else if (!shape.isFile(entry.name)) yield { path, entry, wanted: null };
    else if (!entry.isFile()) yield { path, entry, wanted: "file" };
  }
}

/** Whether a folder belongs here, because every archive has it, or an archived run or its instance does. */
async function isTaken(layout: Layout, path: string): Promise<boolean> {
  const [top, ...below] = relative(layout.dir, path).split(sep);
  const [instance, run] = top === "tables" ? below.slice(1) : below;
  if (instance === undefined) return true;
  const folder = join(layout.runsDir, instance);
  const found = await lstatOrNull(run === undefined ? folder : join(folder, `${run}.json`));
  if (run !== undefined) return found !== null;
  // if the folder of manifests itself is gone, only the data shows it
  return found?.isDirectory() === true || (await hasData(layout, instance));
}

/** Whether a path is, is in, or leads to a folder of these runs. */
function onPathsOf(layout: Layout, runs: readonly RunRef[]): (path: string) => boolean {
  const parts = new Set<string>();
  const own = new Set<string>();
  for (const run of runs) {
    for (const { folder } of ownFoldersOf(layout, run)) own.add(folder);
    for (const path of [
      layout.manifestFile(run),
      layout.lockFile(run),
      layout.cacheFile(run),
      ...foldersOf(layout, run),
    ]) {
      for (let part = path; part !== layout.dir && !parts.has(part); part = dirname(part)) parts.add(part);
    }
  }
  return (path) => parts.has(path) || own.has(dirname(path));
}

/** Parquet files that are, or are in, a foreign entry below a table's folder: globs over the table read these. */
async function parquetIn(layout: Layout, path: string, entry: Dirent): Promise<string[]> {
  const [top, table, ...below] = relative(layout.dir, path).split(sep);
  if (top !== "tables" || below.length === 0 || !tableNames.some((name) => name === table)) return [];
  if (!entry.isDirectory()) return path.endsWith(".parquet") ? [path] : [];
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    // a foreign folder may be unreadable
    if (isMissing(error) || (error as NodeJS.ErrnoException).code === "EACCES") return [];
    throw RunvaultError.from(error, { place: { file: path } });
  });
  const files = entries.filter((found) => !found.isDirectory() && found.name.endsWith(".parquet"));
  return files.map((found) => join(found.parentPath, found.name)).sort();
}

/** What is in a folder, by name; nothing if there is none. */
export async function entriesIn(folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    // gone since it was listed
    if (isMissing(error)) return [];
    throw RunvaultError.from(error, { place: { file: folder } });
  }
}
