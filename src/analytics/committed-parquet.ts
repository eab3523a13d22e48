import { join, resolve } from "node:path";
import type { Archive } from "../archive/archive.ts";
import type { ExactTypes } from "../archive/convert-types.ts";
import type { Manifest, TableState } from "../archive/manifest.ts";
import { type TableName, tableNames } from "../model/table.ts";

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
  /** DuckDB types of its exact columns. */
  readonly exactTypes: ExactTypes;
}

const shown: ReadonlySet<TableState> = new Set(["COMPLETE", "OPEN"]);

/** A table of a run whose rows readers do not see unless they ask for all. */
export interface WithheldTable {
  readonly instance: string;
  readonly run: string;
  readonly table: TableName;
  /** Null where the run was archived without the table. */
  readonly state: TableState | null;
}

/** The tables whose rows `committedParquet` leaves out for their state, or that were not archived at all. */
export function withheldTables(manifests: readonly Manifest[]): WithheldTable[] {
  return manifests.flatMap((manifest) =>
    tableNames.flatMap((table) => {
      const { state, certificate } = manifest.tables[table] ?? { state: null, certificate: null };
      const isSeen = state !== null && (shown.has(state) || state === "ABSENT" || certificate?.rows === 0);
      return isSeen ? [] : [{ instance: manifest.instanceId, run: manifest.runId, table, state }];
    }),
  );
}

/** One line that says what is left out, and how to see it; null where nothing is. */
export function withheldNote(withheld: readonly WithheldTable[]): string | null {
  if (withheld.length === 0) return null;
  const named = withheld
    .slice(0, 3)
    .map(({ instance, run, table, state }) => `${table} of ${instance}/${run} (${state ?? "not archived"})`);
  const more = withheld.length > named.length ? ` and ${withheld.length - named.length} more` : "";
  const hint = withheld.some(({ state }) => state !== null)
    ? "; --allow-incomplete shows what rows there are"
    : "";
  return `left out: ${named.join(", ")}${more}${hint}`;
}

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
      exactTypes: entry.exactTypes,
    }));
  });
}
