import { join, resolve } from "node:path";
import type { Archive } from "../archive/archive.ts";
import type { Manifest, TableState } from "../archive/manifest.ts";
import type { TableName } from "../model/table.ts";

/** A committed Parquet file of one table of one run. */
export interface CommittedParquet {
  /** Absolute path. */
  readonly file: string;
  readonly instance: string;
  readonly run: string;
  readonly bucket: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

const shown: ReadonlySet<TableState> = new Set(["COMPLETE", "OPEN"]);

/** The committed files of a table in the manifests given: of COMPLETE and OPEN tables only, unless all are allowed. */
export function committedParquet(
  archive: Pick<Archive, "layout">,
  manifests: readonly Manifest[],
  table: TableName,
  allowIncomplete: boolean,
): CommittedParquet[] {
  return manifests.flatMap((manifest) => {
    const entry = manifest.tables[table];
    if (entry === undefined || !(allowIncomplete || shown.has(entry.state))) return [];
    return entry.parquet.map(({ file, bucket, rows, storedBytes, sha256 }) => ({
      file: resolve(join(archive.layout.dataDir(manifest), file)),
      instance: manifest.instanceId,
      run: manifest.runId,
      bucket,
      rows,
      bytes: storedBytes,
      sha256,
    }));
  });
}
