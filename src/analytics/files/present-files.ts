import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { damagedHint } from "../../archive/read/whole-files.ts";
import { damageOf } from "../../archive/storage/damage-of.ts";
import type { Store } from "../../archive/storage/store.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tables } from "../../model/profile/table.ts";
import { type CommittedParquet, committedParquet } from "./committed-parquet.ts";
import { byTypes, type TypedParquet } from "./typed-parquet.ts";

/** One state of an archive: manifests, and by table the files they name, in the order of runs and of time. */
export interface PresentFiles {
  readonly manifests: readonly Manifest[];
  readonly files: ReadonlyMap<TableName, readonly TypedParquet[]>;
}

/**
 * The committed files of the manifests from `readManifests`. Reads the manifests again if a commit has just replaced a
 * file; one that stays missing is reported when its table is used.
 */
export async function presentFiles(
  archive: Pick<Archive, "layout" | "store" | "exactTypes" | "refresh">,
  readManifests: () => Promise<readonly Manifest[]>,
  allowIncomplete: boolean,
): Promise<PresentFiles> {
  let missingBefore: string | null = null;
  for (;;) {
    const manifests = await readManifests();
    // after the manifests: types only ever widen, so that the archive's then hold those of every file
    await archive.refresh();
    const files = new Map<TableName, TypedParquet[]>();
    for (const { name } of tables) {
      files.set(name, byTypes(committedParquet(archive, manifests, name, allowIncomplete)));
    }
    const missing = await firstMissing(archive.store, files);
    // a commit between the reading of the manifests and here replaces files; then the new manifests name others
    if (missing === null || missing === missingBefore) return { manifests, files };
    missingBefore = missing;
  }
}

export function missingFile(file: string, cause?: unknown): RunvaultError {
  return new RunvaultError("archive_damaged", "a committed file is missing", {
    cause,
    place: { file },
    hint: damagedHint,
  });
}

/** Every file, in the order of tables, runs and time. */
export function pathsOf(files: PresentFiles["files"]): string[] {
  return filesIn(files).map(({ file }) => file);
}

/** The first missing file. Its reader reports anything else in its place. */
export async function firstMissing(store: Store, files: PresentFiles["files"]): Promise<string | null> {
  for (const { key, file } of filesIn(files)) {
    if ((await store.head(key).catch(damageOf)) === null) return file;
  }
  return null;
}

function filesIn(files: PresentFiles["files"]): CommittedParquet[] {
  return [...files.values()].flat().flatMap((group) => group.files);
}
