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
  /** Exclusive upper bound of ts_event; undefined for a finished run. It falls back where facts lag behind the rows. */
  until: Nanoseconds | undefined;
  readonly committed: Manifest["tables"];
  /** What was told and brought of the run's tables: what is here must not be less. */
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
  /** Whether rows of a run that turned final are streamed once more, or its counts are trusted. */
  readonly finalPass: "rows" | "counts";
  /** The storage version that rows here are of by now; null where there is none, and while the run goes on. */
  readonly versionNow: () => string | null;
  /** Streams what is held once more, whatever the source says of its versions. */
  readonly recheck: boolean;
  /** Puts the row hash into every certificate. */
  readonly fingerprint: boolean;
  /** Gives the row hash of the rows that Parquet files hold within bounds. */
  readonly hashOf: (table: Table, files: readonly string[], bounds?: TimeBounds) => Promise<RowHash>;
  /** How many rows of Parquet files have a seq that no row of other files has. */
  readonly countGone: (table: Table, before: readonly string[], now: readonly string[]) => Promise<bigint>;
  /** Throws `duplicate_row` where two rows in Parquet files have the same seq. */
  readonly requireDistinctSeq: (table: Table, files: readonly string[]) => Promise<void>;
  /** Ends fetching, where the rest of the work may go on. */
  readonly fetching: AbortSignal;
  /** True once the run's storage version moved while the job went on: then one row may have come in two windows. */
  readonly versionMoved: () => boolean;
  readonly onPlan: (table: Table, rows: number | undefined) => void;
  readonly onRows: (table: Table, rows: number, bytes: number) => void;
  /** Rows of a full scan, which stores nothing. */
  readonly onScanned: (table: Table, rows: number, bytes: number) => void;
}

/** How a table of the run is asked for rows. */
export function asksOf(table: Table, { run, work, evidence }: RunContext): TableAsks {
  const { source, retry, signal } = work;
  const { instanceId, runId, final } = run;
  const onCame: TableAsks["onCame"] = (asks, came) => {
    // a made-up run is asked for as well
    if (asks.run.runId === runId) evidence.sent(asks.table.name, came);
  };
  return { source, run: { instanceId, runId, final }, table, retry, signal, onCame };
}
