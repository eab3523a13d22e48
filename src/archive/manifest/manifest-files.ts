import type { TableName } from "../../model/profile/table.ts";
import type { CommittedFile } from "../read/whole-files.ts";
import type { Manifest } from "./manifest.ts";
import { holdingsOf } from "./table-view.ts";

/** The names of all files in a manifest, by folder. */
export function filesOf(manifest: Manifest): { data: Set<string>; quarantine: Set<string> } {
  const files = everyFile(manifest);
  const namesIn = (folder: ManifestFile["folder"]) =>
    new Set(files.flatMap((one) => (one.folder === folder ? [one.file] : [])));
  return { data: namesIn("data"), quarantine: namesIn("quarantine") };
}

/** A file in a manifest, with its table; null for a document of the run. */
export interface ManifestFile extends CommittedFile {
  readonly table: TableName | null;
}

/** Every file in a manifest. */
export function everyFile(manifest: Manifest): ManifestFile[] {
  // the proven part and a later attempt share files
  const found = new Map<string, ManifestFile>();
  const add = (
    table: TableName | null,
    folder: CommittedFile["folder"],
    files: readonly Omit<CommittedFile, "folder">[],
  ) => {
    for (const { file, storedBytes, sha256 } of files)
      found.set(file, { table, folder, file, storedBytes, sha256 });
  };
  for (const name of Object.keys(manifest.tables) as TableName[]) {
    for (const { segments, parquet, quarantine } of holdingsOf(manifest.tables[name]!)) {
      add(name, "data", segments);
      add(name, "data", parquet);
      add(name, "quarantine", quarantine);
    }
  }
  add(null, "data", Object.values(manifest.documents));
  return [...found.values()];
}

/** The total bytes of a manifest's files. */
export function committedBytes(manifest: Manifest): number {
  return everyFile(manifest).reduce((sum, { storedBytes }) => sum + storedBytes, 0);
}
