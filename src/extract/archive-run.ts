import type { DuckDBConnection } from "@duckdb/node-api";
import PQueue from "p-queue";
import type { Archive } from "../archive/archive.ts";
import { canonicalLineSql, rowHashSql } from "../archive/canonical-sql.ts";
import { commitRun, tidyCommitted } from "../archive/commit.ts";
import type { ExactTypes } from "../archive/convert-types.ts";
import { writeSynced } from "../archive/durable.ts";
import { JobDuckDB } from "../archive/job-duckdb.ts";
import { lockRun } from "../archive/lock.ts";
import {
  type Manifest,
  type RowHash,
  runState,
  type TableManifest,
  type TableState,
} from "../archive/manifest.ts";
import { Pending, type Step } from "../archive/pending.ts";
import { makeRealFolder } from "../archive/real-folder.ts";
import { mostSegmentBytes, sha256Of } from "../archive/segment.ts";
import { parquetRows } from "../archive/sql.ts";
import type { WiderColumn } from "../model/error.ts";
import { alsoTelling, type RetryPolicy } from "../model/retry-policy.ts";
import { documentKinds, type HistorySource, type RunRef } from "../model/source.ts";
import { type Table, type TableName, tableNames, tables } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import { BucketConverter } from "./bucket-converter.ts";
import { BufferPool } from "./buffer-pool.ts";
import { diskBytes, refuseWhenFull, textBytes } from "./disk-need.ts";
import { describeRun, settledVersion } from "./run-knowledge.ts";
import { isUpToDate, lookAhead } from "./run-outlook.ts";
import { type RunContext, TableJob } from "./table-job.ts";

export interface ArchiveSettings {
  /** Text a segment is cut at. 8 MiB: small enough for several in memory, large enough for zstd and for few files. */
  readonly segmentBytes: number;
  /** Rows of one slice, about. 500,000: some seconds of transfer, the most that a failure without progress costs. */
  readonly sliceRows: number;
  /** Slices in flight. */
  readonly concurrency: number;
  /** How long rows of a run that goes on may still arrive late and yet be waited for, in nanoseconds. */
  readonly settleNs: bigint;
  /** Calls a table UNVERIFIED whose proof is weaker than the gateway's own counts. */
  readonly requireCounted: boolean;
  readonly acceptShrink: boolean;
  /** Puts the row hash of every table into its certificate. */
  readonly fingerprint: boolean;
  /** Memory DuckDB may take for the conversion, in MiB. With less than 300 it no longer uses two threads. */
  readonly memoryLimitMb: number;
  readonly threads: number;
}

export const defaultSettings: ArchiveSettings = {
  segmentBytes: 8 * 1024 * 1024,
  sliceRows: 500_000,
  concurrency: 3,
  settleNs: 60_000_000_000n,
  requireCounted: false,
  acceptShrink: false,
  fingerprint: false,
  memoryLimitMb: 320,
  threads: 2,
};

export interface ArchiveJob {
  readonly source: HistorySource;
  readonly archive: Archive;
  readonly run: RunRef;
  /** All tables unless given. */
  readonly tables?: readonly TableName[];
  readonly settings?: Partial<ArchiveSettings>;
  readonly clock: () => Nanoseconds;
  /** For answers that are cut; the source has its own for those that do not begin. */
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** Version of this program, for the manifest. */
  readonly tool: string;
  /** What converts, for a caller with several jobs, one after another. Default: one for this job. */
  readonly duckdb?: JobDuckDB;
  readonly step?: Step;
  /** Rows of a table that will pass in all: where a survey comes first, its rows as well as those fetched. */
  readonly onPlan?: (table: Table, rows: number | undefined) => void;
  /** Rows as they pass. */
  readonly onRows?: (table: Table, rows: number, bytes: number) => void;
  readonly onNote?: (text: string) => void;
}

export interface RunOutcome {
  readonly manifest: Manifest;
  /** False when the archive already held all there is. */
  readonly changed: boolean;
  readonly resumedSegments: number;
  /** Columns that stopped their tables, with types that would not have. */
  readonly tooNarrow: readonly WiderColumn[];
  readonly rows: number;
  readonly bytes: number;
}

/**
 * Archives one run: plan, fetch, convert, certify, commit. Running it again after any interruption finishes the work
 * without fetching what is safe. A table that fails keeps what the archive holds of it; the others are committed.
 */
export async function archiveRun(job: ArchiveJob): Promise<RunOutcome> {
  const settings = { ...defaultSettings, ...job.settings };
  const { source, archive, clock } = job;
  const step = job.step ?? (() => {});
  const wanted = tables.filter(({ name }) => job.tables === undefined || job.tables.includes(name));
  const startedAt = isoOf(clock());
  const startedMs = performance.now();
  const stop = new AbortController();
  const signal = AbortSignal.any([job.signal, stop.signal]);
  let retries = 0;
  let rows = 0;
  let bytes = 0;

  const run = await describeRun(source, job.run, signal);
  await using _lock = await lockRun(archive.layout, run);
  await archive.refresh();
  const exactTypes = typesNow(archive);
  const committed = await archive.manifest(run);
  if (committed !== null && (await isUpToDate(source, committed, run, wanted, settings, signal))) {
    await tidyCommitted(archive, committed);
    return { manifest: committed, changed: false, resumedSegments: 0, tooNarrow: [], rows: 0, bytes: 0 };
  }
  const held = { layout: archive.layout, run, committed, storageVersion: settledVersion(run), exactTypes };
  await using pending = await Pending.open(held, step);
  const settled = clock() - settings.settleNs;
  const outlook = await lookAhead(source, run, committed, settled, signal);
  const { until } = outlook;
  step("planned");

  await makeRealFolder(archive.layout, archive.layout.stagingDir(run));
  await using ownDuckDB = new JobDuckDB();
  const duckdb = await (job.duckdb ?? ownDuckDB).forJob({
    memoryLimitMb: settings.memoryLimitMb,
    threads: settings.threads,
    tempDirectory: archive.layout.stagingDir(run),
  });
  await using converter = new BucketConverter(duckdb.connection, (table) => exactTypes(table.name), step);
  const context: RunContext = {
    exactTypes,
    pending,
    run,
    until,
    committed: committed?.tables ?? {},
    slices: new PQueue({ concurrency: settings.concurrency }),
    converter,
    work: {
      source,
      pool: new BufferPool(settings.concurrency + 2, settings.segmentBytes + (1 << 20)),
      segmentBytes: settings.segmentBytes,
      mostBytes: Math.max(mostSegmentBytes, settings.segmentBytes),
      retry: alsoTelling(job.retry, () => {
        retries++;
      }),
      signal,
    },
    sliceRows: settings.sliceRows,
    acceptShrink: settings.acceptShrink,
    requireCounted: settings.requireCounted,
    fingerprint: settings.fingerprint
      ? (table, files) => rowHashOf(duckdb.connection, table, files)
      : undefined,
    onPlan: job.onPlan ?? (() => {}),
    onRows: (table, count, size) => {
      rows += count;
      bytes += size;
      job.onRows?.(table, count, size);
    },
    onSurveyed: job.onRows ?? (() => {}),
  };
  const jobs = wanted.map((table) => new TableJob(table, context, outlook.countRows(table)));

  /** One step of all tables side by side; what concerns the whole run stops them all. */
  const together = async (action: (table: TableJob) => Promise<void>) => {
    const outcomes = await Promise.allSettled(
      jobs.map(async (table) => {
        try {
          await table.attempt(() => action(table));
        } catch (error) {
          stop.abort(error);
          throw error;
        }
      }),
    );
    job.signal.throwIfAborted();
    if (stop.signal.aborted) throw stop.signal.reason;
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  };

  await together((table) => table.plan(outlook.facts));
  const text = jobs.reduce((sum, table) => sum + textBytes(table.table, table.rowsToFetch), 0);
  await refuseWhenFull(archive.dir, diskBytes(text));
  await together((table) => table.fetch());
  let latest = await outlook.factsNow();
  for (let round = 0; round < 2; round++) {
    let more = false;
    await together(async (table) => {
      if (await table.reconcile(latest)) more = true;
    });
    if (!more) break;
    job.onNote?.("counts differ from the gateway's: fetching the changed windows again");
    await together((table) => table.fetch());
    latest = await outlook.factsNow();
  }
  step("certified");

  const checkedAt = isoOf(clock());
  const results: Partial<Record<TableName, TableManifest>> = { ...committed?.tables };
  for (const table of jobs) results[table.table.name] = await table.result(latest, checkedAt);
  const documents = await fetchDocuments(source, run, pending, signal);
  const manifest: Manifest = {
    format: 1,
    instanceId: run.instanceId,
    runId: run.runId,
    generation: pending.generation,
    state: stateOf(results),
    run: {
      status: run.status,
      started: run.started?.toString() ?? null,
      ended: run.ended?.toString() ?? null,
      final: run.final,
      storageVersion: run.storageVersion ?? null,
    },
    source: source.label,
    horizon: until?.toString() ?? null,
    tables: Object.fromEntries(
      tableNames.flatMap((name) => (results[name] === undefined ? [] : [[name, results[name]]])),
    ),
    documents,
    tool: job.tool,
    startedAt,
    committedAt: isoOf(clock()),
    durationMs: Math.round(performance.now() - startedMs),
    retries,
  };
  const { resumedSegments } = pending.held;
  await commitRun(archive, manifest, pending, step);
  await pending.remove();
  step("pending-removed");
  const tooNarrow = jobs.flatMap(({ error }) => (error?.wider === undefined ? [] : [error.wider]));
  return { manifest, changed: true, resumedSegments, tooNarrow, rows, bytes };
}

/** The row hash of a table's Parquet files. */
export async function rowHashOf(
  connection: DuckDBConnection,
  table: Table,
  files: readonly string[],
): Promise<RowHash> {
  if (files.length === 0) return { rows: "0", sum: "0" };
  const sql = rowHashSql(canonicalLineSql(table), parquetRows(files));
  const reader = await connection.runAndReadAll(sql);
  const [[rows, sum]] = reader.getRows() as [[bigint, bigint]];
  return { rows: rows.toString(), sum: sum.toString() };
}

/** The types as they are now: those of one job are the same from its first bucket to its commit. */
export function typesNow(archive: Archive): (table: TableName) => ExactTypes {
  const types = new Map(tableNames.map((name) => [name, archive.exactTypes(name)]));
  return (name) => types.get(name)!;
}

async function fetchDocuments(
  source: HistorySource,
  run: RunRef,
  pending: Pending,
  signal: AbortSignal,
): Promise<Manifest["documents"]> {
  const documents: Manifest["documents"] = {};
  for (const kind of documentKinds) {
    const bytes = await source.document(run, kind, signal);
    if (bytes === null) continue;
    const file = pending.nextName(kind, "json");
    await writeSynced(pending.pendingFile(file), bytes);
    documents[kind] = { file, storedBytes: bytes.byteLength, sha256: sha256Of(bytes) };
  }
  return documents;
}

function stateOf(results: Partial<Record<TableName, TableManifest>>): TableState {
  return runState(Object.values(results).map(({ state }) => state));
}

/** A time to the millisecond, as manifests have it. */
export function isoOf(ns: Nanoseconds): string {
  return new Date(Number(ns / 1_000_000n)).toISOString();
}
