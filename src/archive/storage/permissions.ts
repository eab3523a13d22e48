import { stat } from "node:fs/promises";
import { sep } from "node:path";
import { privateFile, privateFolder } from "../../model/make-folder.ts";
import type { Layout } from "../layout.ts";

/** Permission bits of a folder, and of files in it. */
export interface Permissions {
  readonly folder: number;
  readonly file: number;
}

/**
 * What is made at a path of an archive gets, whatever the process's umask. It follows the archive's root as it is now: an
 * archive whose root a group may read has files that the group may read. A scratch folder outside of it is its owner's
 * alone; so is what DuckDB spills in `staging/`, unless the group works on the archive together.
 */
export async function permissionsAt(layout: Layout, path: string): Promise<Permissions> {
  if (layout.isScratch(path)) return { folder: privateFolder, file: privateFile };
  const root = (await stat(layout.dir)).mode & 0o777;
  // its owner works in it, whatever the root says
  const folder = root | 0o700;
  const isOpen = (root & 0o020) !== 0 || !isSpilledTo(layout, path);
  return { folder: isOpen ? folder : privateFolder, file: folder & 0o666 };
}

/** Whether a path is one of the folders in `staging/` that runs have, or in one. */
function isSpilledTo(layout: Layout, path: string): boolean {
  const staging = `${layout.stagingRoot}${sep}`;
  return path.startsWith(staging) && path[staging.length] !== ".";
}
