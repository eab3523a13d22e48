import { findArchive } from "../../archive/archive.ts";
import type { ListFinding } from "../../extract/choose/list-finding.ts";
import { diskBytes, diskRoom, hasRoom, leastRoom, textBytes } from "../../extract/fetch/disk-need.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import { latestText } from "../../model/run-argument.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import type { JobFile } from "../file/job-files.ts";
import type { RunPlan } from "../record/job-record.ts";
import { chooseNow } from "./choose-now.ts";
import { openJobGateway } from "./job-gateway.ts";
import type { JobMeans } from "./job-means.ts";
import { addressesOf, countPlans, type JobRun, wantedTables } from "./job-runs.ts";
import { hasRetention, unkeptRuns } from "./keep-runs.ts";

/** A run as an execution would take it, or leave it. */
export interface PlannedJobRun extends RunRef {
  readonly plan: RunPlan;
  /** Rows to fetch and their disk space; null if the gateway does not say, or nothing is to be fetched. */
  readonly rows: number | null;
  readonly diskBytes: number | null;
  /** Why the gateway does not say. */
  readonly error: RunvaultError | null;
}

export type PlanJobEvent =
  | { readonly kind: "finding"; readonly finding: ListFinding }
  | { readonly kind: "planned"; readonly run: PlannedJobRun };

/** The totals of a planned execution. */
export interface PlannedJob {
  readonly exit: number;
  /** Number of runs by plan. */
  readonly counts: Readonly<Partial<Record<RunPlan, number>>>;
  readonly freeBytes: number;
  readonly neededBytes: number;
  /** False if the disk lacks room. */
  readonly fits: boolean;
  /** Archived runs that `keep` would remove now. */
  readonly toRemove: { readonly runs: number; readonly bytes: number };
}

/**
 * What an execution would do now: all of its runs, those with work in order. Asks the gateway for its lists, and for
 * the facts of each run with work; writes nothing and does not wait.
 */
export async function* planJob(file: JobFile, means: JobMeans): AsyncGenerator<PlanJobEvent, PlannedJob> {
  const { job } = file;
  const { signal } = means;
  await using gateway = await openJobGateway(file, means);
  const archive = await findArchive(job.archive, { scratch: job.scratch });
  const { runs, skew } = await chooseNow(job, gateway, archive, means);
  if (skew !== null) means.note(skew);
  if (runs.latest !== null) means.note(latestText(runs.latest));
  const statuses: number[] = [];
  for (const finding of runs.findings) {
    yield { kind: "finding", finding };
    if (finding.error !== null) statuses.push(finding.error.exit);
  }
  const wanted = wantedTables(job);
  let needed = 0;
  for (const run of runs.work) {
    const planned = await neededFor(run, gateway, wanted, signal);
    if (planned.error !== null) statuses.push(planned.error.exit);
    if (planned.error?.scope === "job") throw planned.error;
    needed += planned.diskBytes ?? 0;
    yield { kind: "planned", run: planned };
  }
  for (const run of runs.all) {
    if (run.plan === "unchanged") yield { kind: "planned", run: plannedRun(run) };
  }
  const sources = await addressesOf(job, archive, gateway.label);
  const unkept =
    archive === null || !hasRetention(job)
      ? []
      : await unkeptRuns(archive, job, sources, means.clock(), signal);
  const disks = job.scratch === undefined ? [job.archive] : [job.archive, job.scratch];
  const room = leastRoom(await Promise.all(disks.map(diskRoom)));
  return {
    exit: worstExit(statuses),
    counts: countPlans(runs),
    freeBytes: room.free,
    neededBytes: needed,
    fits: hasRoom(room, needed),
    toRemove: {
      runs: unkept.length,
      bytes: unkept.reduce((sum, { bytes }) => sum + bytes, 0),
    },
  };
}

function plannedRun({ instanceId, runId, plan }: JobRun): PlannedJobRun {
  return { instanceId, runId, plan, rows: null, diskBytes: null, error: null };
}

/** Disk space for a run by its facts, minus what the archive has; all of it if its rows may have changed. */
export async function neededFor(
  run: JobRun,
  source: HistorySource,
  wanted: readonly Table[],
  signal: AbortSignal,
): Promise<PlannedJobRun> {
  const planned = plannedRun(run);
  if (run.listed === null) return planned;
  try {
    const facts = await source.facts(run, {}, signal);
    if (facts === null) return planned;
    let rows = 0;
    let disk = 0;
    for (const table of wanted) {
      const there = Number(facts.get(table.name)?.rows ?? 0n);
      // proven rows of a growing run stay, and new ones follow
      const here = run.held?.isOpen === true ? (run.held.rows[table.name] ?? 0) : 0;
      const more = Math.max(0, there - here);
      rows += more;
      disk += diskBytes(textBytes(table, more));
    }
    return { ...planned, rows, diskBytes: disk };
  } catch (thrown) {
    signal.throwIfAborted();
    const { instanceId: instance, runId } = run;
    return { ...planned, error: RunvaultError.from(thrown).at({ instance, run: runId }) };
  }
}
