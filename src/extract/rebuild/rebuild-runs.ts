import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import type { Step } from "../../archive/write/run-journal.ts";
import { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import type { ConversionChange, RunWatcher } from "../run-watcher.ts";
import { type AppliedProfile, rebuildByProfile } from "./rebuild-by-profile.ts";
import { openRecord, type RebuildScope, removeRecord } from "./rebuild-record.ts";
import { type RebuildOutcome, rebuildRun } from "./rebuild-run.ts";
import {
  finishWidening,
  runsOfOtherTypes,
  startWidening,
  tidyInterrupted,
  unfinishedTables,
} from "./widen.ts";
import type { WantedTypes } from "./widened-types.ts";

/** What is rebuilt, and up to which generation of each run; null for only what does not have the archive's types. */
export interface RebuildWork {
  readonly runs: readonly (RunRef & { readonly upTo: number | null })[];
  readonly tables: readonly TableName[] | undefined;
  /** Whether this is a change of types. */
  readonly widens: boolean;
  /** The profile that rows are converted to. Default: rows stay as they are. */
  readonly profile?: AppliedProfile;
  /** When the rebuild began that this one continues; null if this is a new one. */
  readonly since: string | null;
  /** Removes the record that a continued rebuild would need. */
  readonly done: () => Promise<void>;
}

/** One run's result, without the manifest, which names every file and would add up over many runs. */
export interface RebuiltRun extends RunRef {
  readonly outcome: (Omit<RebuildOutcome, "manifest"> & Pick<Manifest, "generation" | "state">) | null;
  readonly seconds: number;
  readonly error: RunvaultError | null;
}

export interface RebuiltRuns {
  readonly notTried: readonly RunRef[];
  /** Tables whose types are not yet changed in all runs. */
  readonly unfinished: readonly TableName[];
  /** Why a change of types could not be finished; null if nothing failed. */
  readonly error: RunvaultError | null;
}

export interface RebuildMeans {
  readonly signal: AbortSignal;
  /** Version of this program, for the manifests. */
  readonly tool: string;
  readonly step: Step;
  readonly watcher?: RunWatcher;
}

/** A rebuild of these runs; one that was interrupted continues, in its original order. */
export async function plainRebuild(
  archive: Archive,
  manifests: readonly Manifest[],
  scope: RebuildScope,
  step: Step,
): Promise<RebuildWork> {
  const runs = manifests.map(({ instanceId, runId, generation }) => ({ instanceId, runId, generation }));
  const startedAt = new Date().toISOString();
  const { record, resumed } = await openRecord(archive, scope, { startedAt, runs }, step);
  const there = new Set(runs.map(keyOf));
  return {
    // without runs that were removed since
    runs: record.runs
      .filter((run) => there.has(keyOf(run)))
      .map(({ generation, ...run }) => ({ ...run, upTo: generation })),
    tables: scope.tables,
    widens: false,
    since: resumed ? record.startedAt : null,
    done: () => removeRecord(archive, scope),
  };
}

/** A conversion of these runs' rows to another profile. Manifests show which are done. */
export function profileRebuild(
  manifests: readonly Manifest[],
  tables: readonly TableName[] | undefined,
  profile: AppliedProfile,
): RebuildWork {
  const runs = manifests.map(({ instanceId, runId }) => ({ instanceId, runId, upTo: null }));
  return { runs, tables, widens: false, profile, since: null, done: async () => {} };
}

/** A change of types in all runs. Throws as `startWidening` does, with nothing changed. */
export async function wideningRebuild(
  archive: Archive,
  wanted: WantedTypes,
  step: Step,
): Promise<RebuildWork> {
  await startWidening(archive, wanted, step);
  await tidyInterrupted(archive);
  const runs = (await runsOfOtherTypes(archive)).map(({ instanceId, runId }) => ({
    instanceId,
    runId,
    upTo: null,
  }));
  // manifests show what is left to do
  return { runs, tables: undefined, widens: true, since: null, done: async () => {} };
}

/**
 * Rebuilds runs one after another, and yields each once it is done; then finishes a change of types that every run has.
 * A run that fails does not stop the others, unless the job itself cannot go on. Throws the signal's reason.
 */
export async function* rebuildRuns(
  archive: Archive,
  work: RebuildWork,
  means: RebuildMeans,
): AsyncGenerator<RebuiltRun, RebuiltRuns> {
  await using duckdb = new JobDuckDB();
  let tried = 0;
  let isWhole = true;
  for (const run of work.runs) {
    means.watcher?.run?.(run, ++tried, work.runs.length);
    const rebuilt = await rebuildOne(archive, run, work, duckdb, means);
    yield rebuilt;
    isWhole &&= rebuilt.error === null;
    if (rebuilt.error?.scope === "job") break;
  }
  const notTried = work.runs.slice(tried).map(({ instanceId, runId }) => ({ instanceId, runId }));
  if (isWhole) await work.done();
  const error = await endWidening(archive, work, means);
  return { notTried, unfinished: unfinishedTables(archive), error };
}

async function endWidening(
  archive: Archive,
  { widens }: RebuildWork,
  { step, signal }: RebuildMeans,
): Promise<RunvaultError | null> {
  try {
    await finishWidening(archive, step, signal);
    return null;
  } catch (thrown) {
    signal.throwIfAborted();
    const error = RunvaultError.from(thrown);
    // then another command is changing types and will finish it
    return !widens && error.code === "locked" ? null : error;
  }
}

async function rebuildOne(
  archive: Archive,
  { upTo, ...run }: RebuildWork["runs"][number],
  { tables, profile }: Pick<RebuildWork, "tables" | "profile">,
  duckdb: JobDuckDB,
  { signal, tool, step, watcher = {} }: RebuildMeans,
): Promise<RebuiltRun> {
  const startedMs = performance.now();
  const seconds = () => Math.round(performance.now() - startedMs) / 1000;
  try {
    signal.throwIfAborted();
    const job = {
      ...{ archive, run, tables, clock: wallClock, signal, tool, duckdb, step },
      onPlan: (rows: number) => watcher.expect?.(rows),
      onRows: (rows: number, bytes: number) => watcher.rows?.(rows, bytes),
      onConversion: (change: ConversionChange) => watcher.conversion?.(change),
    };
    const { manifest, ...made } =
      profile === undefined ? await rebuildRun({ ...job, upTo }) : await rebuildByProfile(job, profile);
    const { generation, state } = manifest;
    return { ...run, outcome: { generation, state, ...made }, seconds: seconds(), error: null };
  } catch (thrown) {
    signal.throwIfAborted();
    const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
    return { ...run, outcome: null, seconds: seconds(), error };
  }
}

function keyOf({ instanceId, runId }: RunRef): string {
  return JSON.stringify([instanceId, runId]);
}
