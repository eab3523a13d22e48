import { join } from "node:path";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import { ownFoldersOf } from "../storage/own-names.ts";
import { lstatOrNull, requireRealFolder } from "../storage/real-folder.ts";
import { entriesIn } from "../verify/verify-places.ts";

/**
 * Disk space freed by removing a run: the bytes of its actual files, with or without a manifest. Links in `tables/` are
 * the same files, and a journal is not data.
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
