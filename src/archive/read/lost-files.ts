import type { TableName } from "../../model/profile/table.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { everyFile, type ManifestFile } from "../manifest/manifest-files.ts";
import { WholeFiles } from "./whole-files.ts";

/**
 * The files of a committed run that are missing, have another size, or were found to have other bytes by whoever read
 * them last: what a job has to make anew. Files that nobody read since they changed are not among them: only `verify`
 * reads every byte.
 */
export async function lostFiles(
  archive: Pick<Archive, "layout" | "store">,
  committed: Manifest | null,
): Promise<readonly ManifestFile[]> {
  if (committed === null) return [];
  return await new WholeFiles(archive).lostOf(committed, everyFile(committed));
}

/** The names of files, of every table. */
export function namesOf(files: readonly ManifestFile[]): ReadonlySet<string> {
  return new Set(files.map(({ file }) => file));
}

/** Those of the files that are of one of these tables, or documents of the run. */
export function concerning(
  files: readonly ManifestFile[],
  tables: readonly { readonly name: TableName }[],
): readonly ManifestFile[] {
  const wanted = new Set<TableName | null>([null, ...tables.map(({ name }) => name)]);
  return files.filter(({ table }) => wanted.has(table));
}
