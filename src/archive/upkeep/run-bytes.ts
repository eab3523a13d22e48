import { join } from "node:path";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import { ownFoldersOf } from "../storage/own-names.ts";
import { lstatOrNull, requireRealFolder } from "../storage/real-folder.ts";
import { entriesIn } from "../verify/verify-places.ts";

/**
 * What goes from the disk with a run: the bytes of its files as they are, whatever a manifest says of them, and whether or
 * not there is one. Links in `tables/` are the same files again, and a journal is none that a commit takes up.
 */
export async function runBytes({ layout }: Archive, run: RunRef): Promise<number> {
  const linked = new Set<string>(tableNames.map((table) => layout.tableDir(table, run)));
  let bytes = 0;
  for (const { folder, isOwn } of ownFoldersOf(layout, run)) {
    if (linked.has(folder) || !(await requireRealFolder(layout, folder))) continue;
    for (const { name } of await entriesIn(folder)) {
      if (!isOwn(name) || name === "journal.ndjson") continue;
      const found = await lstatOrNull(join(folder, name));
      if (found?.isFile()) bytes += found.size;
    }
  }
  return bytes;
}
