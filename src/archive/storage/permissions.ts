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
 * Permissions for anything created in an archive, whatever the process's umask. They follow the archive's current root:
 * if a group may read the root, it may read the files. An external scratch folder is private to its owner; so are
 * DuckDB's temporary files in `staging/`, unless the group works on the archive together.
 */
export async function permissionsAt(layout: Layout, path: string): Promise<Permissions> {
  if (layout.isScratch(path)) return { folder: privateFolder, file: privateFile };
  const root = (await stat(layout.dir)).mode & 0o777;
  // its owner works in it, whatever the root's mode
  const folder = root | 0o700;
  const isOpen = (root & 0o020) !== 0 || !isSpilledTo(layout, path);
  return { folder: isOpen ? folder : privateFolder, file: folder & 0o666 };
}

/** Whether a path is in a run's folder in `staging/`, or is one. */
function isSpilledTo(layout: Layout, path: string): boolean {
  const staging = `${layout.stagingRoot}${sep}`;
  return path.startsWith(staging) && path[staging.length] !== ".";
}
