import { stat } from "node:fs/promises";
import type { Archive } from "../archive/archive.ts";
import type { Manifest } from "../archive/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import { type TableName, tables } from "../model/table.ts";
import { committedParquet } from "./committed-parquet.ts";
import { byTypes, type TypedParquet } from "./typed-parquet.ts";

/** One state of an archive: manifests, and by table the files they name, in the order of runs and of time. */
export interface PresentFiles {
  readonly manifests: readonly Manifest[];
  readonly files: ReadonlyMap<TableName, readonly TypedParquet[]>;
}

/**
 * The committed files of the manifests that `readManifests` gives, all of them seen to be there. Reads the manifests
 * again where a commit has just replaced a file. Throws `archive_damaged` where a file stays missing.
 */
export async function presentFiles(
  archive: Pick<Archive, "layout" | "exactTypes" | "refresh">,
  readManifests: () => Promise<readonly Manifest[]>,
  allowIncomplete: boolean,
): Promise<PresentFiles> {
  for (let attempt = 1; ; attempt++) {
    const manifests = await readManifests();
    // after the manifests: types only ever widen, so that the archive's then hold those of every file
    await archive.refresh();
    const files = new Map<TableName, TypedParquet[]>();
    for (const { name } of tables) {
      files.set(name, byTypes(committedParquet(archive, manifests, name, allowIncomplete)));
    }
    const missing = await firstMissing(pathsOf(files));
    if (missing === null) return { manifests, files };
    // a commit between the reading of the manifests and here replaces files; then the new manifests name others
    if (attempt === 3) {
      throw missingFile(missing);
    }
  }
}

export function missingFile(file: string, cause?: unknown): RunvaultError {
  return new RunvaultError("archive_damaged", "a committed file is missing", {
    cause,
    place: { file },
    hint: "Run `runvault verify`; archiving the run again puts the file back.",
  });
}

/** Every file, in the order of tables, runs and time. */
export function pathsOf(files: PresentFiles["files"]): string[] {
  return [...files.values()].flat().flatMap((group) => group.files.map(({ file }) => file));
}

/** The first of these files that is not there. */
export async function firstMissing(paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    try {
      await stat(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
      throw RunvaultError.from(error, { place: { file: path } });
    }
  }
  return null;
}
