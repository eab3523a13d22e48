import { openArchive as openArchiveIn } from "../archive/archive.ts";
import { consistentRuns } from "../archive/manifest/found-runs.ts";
import type { TableState } from "../archive/manifest/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/profile/table.ts";
import type { HistorySource, RunRef } from "../model/source.ts";

export type { TableState } from "../archive/manifest/manifest.ts";
export { RunvaultError } from "../model/error.ts";
export type { TableName } from "../model/profile/table.ts";
export type { HistorySource, RowRequest, RunRef } from "../model/source.ts";

/** A committed run. */
export interface CommittedRun extends RunRef {
  /** COMPLETE if every table is proven. */
  readonly state: TableState;
  /** The gateway's word for how the run ended, such as FINISHED. */
  readonly status: string;
  /** Nanoseconds since 1970 UTC; null if the gateway gave none. */
  readonly started: bigint | null;
  readonly ended: bigint | null;
  /** Rises with every commit of the run, from 1. */
  readonly generation: number;
  /** By table, its state and the number of proven rows: 0 if there are none, whatever is kept beside them. */
  readonly tables: Readonly<
    Partial<Record<TableName, { readonly state: TableState; readonly rows: number }>>
  >;
}

/** An archive folder. */
export interface RunArchive {
  readonly folder: string;
  /**
   * The committed runs, or those of one instance, ordered by instance and run. Throws `archive_damaged` if a manifest
   * cannot be used, and `not_archived` for an instance without archived runs.
   */
  runs(instanceId?: string): AsyncIterable<CommittedRun>;
  /**
   * Rows and documents, as a gateway would answer. Only proven rows, unless `allowIncomplete` is set. Dispose it after use.
   */
  source(options?: { readonly allowIncomplete?: boolean }): Promise<HistorySource>;
}

/** Opens an archive folder for reading. Throws `not_an_archive` if there is none. */
export async function openArchive(folder: string): Promise<RunArchive> {
  const archive = await openArchiveIn(folder);
  return {
    folder,
    async *runs(instanceId) {
      for await (const { manifest, damage } of consistentRuns(
        archive,
        instanceId === undefined ? [] : [{ instanceId }],
      )) {
        if (manifest === null) {
          const { message, file, hint } = damage!;
          throw new RunvaultError("archive_damaged", message, { place: { file }, hint });
        }
        const { run } = manifest;
        const tables = Object.entries(manifest.tables).map(([name, { state, proven }]) => {
          return [name, { state, rows: proven?.certificate?.rows ?? 0 }];
        });
        yield {
          instanceId: manifest.instanceId,
          runId: manifest.runId,
          state: manifest.state,
          status: run.status,
          started: run.started === null ? null : BigInt(run.started),
          ended: run.ended === null ? null : BigInt(run.ended),
          generation: manifest.generation,
          tables: Object.fromEntries(tables),
        };
      }
    },
    async source(options = {}) {
      // loads DuckDB, which most callers do not need
      const { openArchiveSource } = await import("../archive/read/archive-source.ts");
      return openArchiveSource(archive, options);
    },
  };
}
