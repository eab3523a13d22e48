import type { Manifest } from "../../archive/manifest/manifest.ts";
import type { RunJournal } from "../../archive/write/run-journal.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { Nanoseconds, TimeBounds } from "../../model/time.ts";
import type { RowHash } from "../../row/row-hash.ts";
import type { RunEvidence } from "../evidence/run-evidence.ts";
import type { BucketConverter } from "../fetch/bucket-converter.ts";
import type { SliceWork } from "../fetch/slice.ts";
import type { SliceQueue } from "../fetch/slice-queue.ts";
import type { TableAsks } from "../plan/table-asks.ts";
import type { RequiredProof } from "../proof/required-proof.ts";
import type { RunDescription } from "./run-description.ts";

/** Shared by the tables of one run's job. */
export interface RunContext {
  /** Types of exact columns that Parquet is made in. */
  readonly exactTypes: (table: TableName) => ExactTypes;
  readonly journal: RunJournal;
  readonly run: RunDescription;
  /** Exclusive upper bound of ts_event; undefined for a finished run. It moves back if facts lag behind the rows. */
  until: Nanoseconds | undefined;
  readonly committed: Manifest["tables"];
  /** What the gateway reported and sent of the run's tables: no less may be here. */
  readonly evidence: RunEvidence;
  readonly slices: SliceQueue;
  /** Priority among runs that are fetched in parallel. */
  readonly order: number;
  readonly converter: BucketConverter;
  readonly work: Omit<SliceWork, "countRows" | "onRows">;
  readonly sliceRows: number;
  readonly acceptShrink: boolean;
  readonly acceptQuarantine: boolean;
  readonly require: RequiredProof;
  /** Whether to stream the rows of a run that has become final once more, or to trust its counts. */
  readonly finalPass: "rows" | "counts";
  /** The storage version of the rows here; null if there is none, and until the run has ended. */
  readonly versionNow: () => string | null;
  /** Streams held rows once more, whatever the source says about its versions. */
  readonly recheck: boolean;
  /** Streams held rows once more even before the run has ended: the gateway has only some of those that were asked for. */
  readonly isChanged: boolean;
  /** Puts the row hash into every certificate. */
  readonly fingerprint: boolean;
  /** The row hash of the rows that Parquet files hold within bounds. */
  readonly hashOf: (table: Table, files: readonly string[], bounds?: TimeBounds) => Promise<RowHash>;
  /** How many rows of Parquet files have a seq that no row of other files has. */
  readonly countGone: (table: Table, before: readonly string[], now: readonly string[]) => Promise<bigint>;
  /** Throws `duplicate_row` if two rows in Parquet files have the same seq. */
  readonly requireDistinctSeq: (table: Table, files: readonly string[]) => Promise<void>;
  /** Ends fetching; the rest of the work may go on. */
  readonly fetching: AbortSignal;
  /** True once the run's storage version has changed during the job: then a row may have come in two windows. */
  readonly versionMoved: () => boolean;
  readonly onPlan: (table: Table, rows: number | undefined) => void;
  readonly onRows: (table: Table, rows: number, bytes: number) => void;
  /** Rows of a full scan, which stores nothing. */
  readonly onScanned: (table: Table, rows: number, bytes: number) => void;
}

/** What small requests about a table of the run need. */
export function asksOf(table: Table, { run, work, evidence }: RunContext): TableAsks {
  const { source, retry, signal } = work;
  const { instanceId, runId, final } = run;
  const onCame: TableAsks["onCame"] = (asks, came) => {
    // rows of a made-up run are requested as well
    if (asks.run.runId === runId) evidence.sent(asks.table.name, came);
  };
  return { source, run: { instanceId, runId, final }, table, retry, signal, onCame };
}
