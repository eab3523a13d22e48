import { basename, resolve } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import type { Manifest, TableState } from "../../archive/manifest/manifest.ts";
import { shownView } from "../../archive/manifest/table-view.ts";
import type { WholeFiles } from "../../archive/read/whole-files.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";

/** A committed Parquet file of one table of one run. */
export interface CommittedParquet {
  readonly key: string;
  /** Absolute path. */
  readonly file: string;
  readonly instance: string;
  readonly run: string;
  readonly bucket: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** ts_event of the first and the last row. */
  readonly minTsEvent: string;
  readonly maxTsEvent: string;
  /** What the table of the run is. */
  readonly state: TableState;
  /** DuckDB types of its exact columns. */
  readonly exactTypes: ExactTypes;
}

/** The committed files of a table in these manifests: the proven ones, unless later attempts are allowed. */
export function committedParquet(
  { layout, store }: Pick<Archive, "layout" | "store">,
  manifests: readonly Manifest[],
  table: TableName,
  allowIncomplete: boolean,
): CommittedParquet[] {
  return manifests.flatMap((manifest) => {
    const entry = shownView(manifest.tables[table], allowIncomplete);
    if (entry === undefined) return [];
    const keyOf = (file: string) => layout.committedKey(manifest, "data", file);
    return entry.parquet.map(({ file, bucket, rows, storedBytes, sha256, first, last }) => ({
      key: keyOf(file),
      file: resolve(store.nameOf(keyOf(file))),
      instance: manifest.instanceId,
      run: manifest.runId,
      bucket,
      rows,
      bytes: storedBytes,
      sha256,
      minTsEvent: first.ts,
      maxTsEvent: last.ts,
      state: entry.state,
      exactTypes: entry.exactTypes,
    }));
  });
}

/** Throws `archive_damaged` with the first of these files that is not what was committed; the signal's reason. */
export async function requireWhole(
  whole: WholeFiles,
  files: readonly CommittedParquet[],
  signal?: AbortSignal,
): Promise<void> {
  const byRun = Map.groupBy(files, ({ instance, run }) => JSON.stringify([instance, run]));
  for (const own of byRun.values()) {
    const { instance: instanceId, run: runId } = own[0]!;
    const promised = own.map(({ file, bytes, sha256 }) => ({
      folder: "data" as const,
      file: basename(file),
      storedBytes: bytes,
      sha256,
    }));
    await whole.require({ instanceId, runId }, promised, signal);
  }
}
