import type { TableName } from "../../model/profile/table.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { everyFile, type ManifestFile } from "../manifest/manifest-files.ts";
import { WholeFiles } from "./whole-files.ts";

/**
 * The committed files of a run that are missing, have another size, or had wrong bytes when last read: a job must make
 * them again. Files changed but not read since are not included: only `verify` reads every byte.
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

/** The files of one of these tables, and documents of the run. */
export function concerning(
  files: readonly ManifestFile[],
  tables: readonly { readonly name: TableName }[],
): readonly ManifestFile[] {
  const wanted = new Set<TableName | null>([null, ...tables.map(({ name }) => name)]);
  return files.filter(({ table }) => wanted.has(table));
}
