import type { Archive } from "../../archive/archive.ts";
import { freeBytes } from "../../extract/fetch/disk-need.ts";
import type { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { isoOf, type Nanoseconds } from "../../model/time.ts";
import type { Job } from "../file/job-schema.ts";
import { diskOutlook } from "../record/job-history.ts";
import type { AfterLine, BeginLine, RecordedError, ResultLine, RunLine } from "../record/job-record.ts";
import type { NightSeen } from "../tell/troubles.ts";
import type { ExecutionsBefore } from "./execution-before.ts";
import { type HeldRun, isExpiring, type JobRun, type JobRuns, keyOf } from "./job-runs.ts";
import { missedStarts } from "./missed-starts.ts";

export interface NightInput {
  readonly job: Job;
  readonly begin: BeginLine;
  readonly result: Omit<ResultLine, "troubles">;
  readonly lines: readonly RunLine[];
  /** Null if it did not get that far. */
  readonly after: readonly AfterLine[] | null;
  /** Null if no list came. */
  readonly runs: JobRuns | null;
  /** The archived state of each run after the execution. */
  readonly held: ReadonlyMap<string, HeldRun>;
  readonly before: ExecutionsBefore;
  readonly recorded: (error: RunvaultError) => RecordedError;
}

/** The findings of an execution, for notifications. */
export function nightSeen(input: NightInput): NightSeen {
  const { job, begin, result, lines, after, runs, held, before } = input;
  const { grownBytes } = before.history;
  return {
    ...{ at: result.at, begin, exit: result.exit, error: result.error, runs: lines, after },
    reconciles: job.after.reconcile !== undefined,
    reports: job.after.reports !== undefined,
    looked: lookedBy(input),
    unproven: (runs?.all ?? []).flatMap((run) => unprovenOf(run, held.get(keyOf(run)), input)),
    expiring:
      runs === null
        ? null
        : expiringRuns(runs, held, job, timeOf(result.at)).map(({ instanceId, runId, expires }) => ({
            instance: instanceId,
            run: runId,
            forgotten: isoOf(expires!),
          })),
    disk: diskOutlook(result.freeBytes, [{ grownBytes: [result.grownBytes, ...grownBytes] }]),
    // starts during the execution are for the next one to report
    missed: missedStarts(job.schedule, before.history, new Date(begin.at)),
    died: before.died.map(({ id, begin: { at } }) => ({ id, at })),
  };
}

/** Unproven runs that the gateway will soon forget. */
export function expiringRuns(
  { all }: JobRuns,
  held: ReadonlyMap<string, HeldRun>,
  job: Job,
  now: Nanoseconds,
): readonly JobRun[] {
  return all.filter((run) => isExpiring(run, job, now) && held.get(keyOf(run))?.isSettled !== true);
}

/**
 * For runs without a line: those whose state an execution knows, because it left them unchanged or they are not its
 * own.
 */
function lookedBy({ runs, lines }: NightInput): (run: RunRef) => boolean {
  if (runs === null) return () => false;
  const failed = runs.findings.filter(({ error }) => error !== null);
  const isAnyFailed = failed.some(({ instanceId }) => instanceId === null);
  const instances = new Set(failed.map(({ instanceId }) => instanceId));
  const plans = new Map(runs.all.map((run) => [keyOf(run), run.plan]));
  const worked = new Set(lines.map(({ instance, run }) => keyOf({ instanceId: instance, runId: run })));
  return (run) => {
    const plan = plans.get(keyOf(run));
    if (plan !== undefined) return plan === "unchanged" || worked.has(keyOf(run));
    return !isAnyFailed && !instances.has(run.instanceId);
  };
}

function unprovenOf({ instanceId, runId }: JobRun, held: HeldRun | undefined, { recorded }: NightInput) {
  return (held?.unproven ?? []).map(({ error, ...table }) => ({
    ...{ instance: instanceId, run: runId, ...table },
    error: error === null ? null : recorded(error),
  }));
}

function timeOf(at: string): Nanoseconds {
  return BigInt(Date.parse(at)) * 1_000_000n;
}

/** Free space of an archive's disk; null if unknown. */
export async function freeBytesOf(archive: Archive): Promise<number | null> {
  return await freeBytes(archive.dir).catch(() => null);
}
