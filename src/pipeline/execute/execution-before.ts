import type { Layout } from "../../archive/layout.ts";
import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, parseTime } from "../../model/time.ts";
import { isAhead, type JobHistory, jobHistory } from "../record/job-history.ts";
import type { RunLine, Trouble } from "../record/job-record.ts";
import { type FoundRecord, readRecords } from "../record/read-records.ts";
import { keyOf } from "./job-runs.ts";

/** What the next execution needs from earlier ones. */
export interface ExecutionsBefore {
  readonly history: JobHistory;
  /** Executions without a result, newer than the last one that ended. */
  readonly died: readonly FoundRecord[];
  /** What was wrong after the last one that ended. */
  readonly troubles: readonly Trouble[];
  /** Whether the last one that worked failed with this run. */
  failed(run: RunRef): boolean;
  /** Runs on which it worked without a commit. */
  readonly left: readonly RunRef[];
  /** Whether it reported that the gateway forgot the run. */
  toldGone(run: RunRef): boolean;
  /** When a run was last asked about, as far back as was read. */
  lastAsked(run: RunRef): Nanoseconds | null;
  /** Runs that ended up to this were removed for lack of space; null if none were. */
  readonly removedUpTo: string | null;
  /** Whether an export was last made from data with this fingerprint. */
  isMadeOf(out: string, fingerprint: string): boolean;
}

/** Most records that are read in full. */
const mostRecords = 64;

/**
 * Reads a job's records, back to an instant and at least to the last execution that did work. For the next execution,
 * before its own record; or for a plan, which sees a running job as one that died.
 */
export async function executionsBefore(
  layout: Layout,
  job: string,
  until: Nanoseconds,
  now: Nanoseconds,
): Promise<ExecutionsBefore> {
  const nowMs = Number(now / 1_000_000n);
  // `runvault jobs` reports damaged records
  const history = await jobHistory(layout, job, () => {}, nowMs);
  const died: FoundRecord[] = [];
  let isEnded = false;
  let worked: ReadonlyMap<string, RunLine> | null = null;
  const asked = new Map<string, Nanoseconds>();
  const made = new Map<string, ReadonlySet<string>>();
  let removedUpTo: string | null = null;
  let read = 0;
  for await (const record of readRecords(layout, { job })) {
    if (isAhead(record, nowMs)) continue;
    if (record.result !== null) isEnded = true;
    // this process has the job's lock, so an apparently running one is another process with the same id, as in
    // containers
    else if (!isEnded) died.push(record);
    if (++read > mostRecords || (worked !== null && parseTime(record.begin.at) < until)) break;
    const runs = new Map<string, RunLine>();
    const madeThen = new Map<string, Set<string>>();
    let isPlanned = false;
    for await (const line of record.lines(() => {})) {
      if (line.kind === "plan") isPlanned = true;
      if (line.kind === "run") {
        const key = keyOf({ instanceId: line.instance, runId: line.run });
        runs.set(key, line);
        const isAsked = ["archived", "unchanged", "by_other"].includes(line.result);
        if (isAsked && !asked.has(key)) asked.set(key, parseTime(line.at));
      }
      if (line.kind === "after") removedUpTo ??= line.removedUpTo ?? null;
      if (line.kind !== "after" || line.what !== "export" || line.out === null) continue;
      // two exports may have the same name in different folders
      if (line.fingerprint !== undefined)
        madeThen.set(line.out, (madeThen.get(line.out) ?? new Set()).add(line.fingerprint));
    }
    for (const [out, fingerprints] of madeThen) if (!made.has(out)) made.set(out, fingerprints);
    if (isPlanned) worked ??= runs;
  }
  return {
    ...{ history, died, removedUpTo },
    troubles: history.lastEnded?.result.troubles ?? [],
    left: [...(worked?.values() ?? [])].flatMap(({ instance, run, result }) =>
      result === "failed" || result === "stopped" ? [{ instanceId: instance, runId: run }] : [],
    ),
    failed: (run) => worked?.get(keyOf(run))?.result === "failed",
    toldGone: (run) => worked?.get(keyOf(run))?.result === "gone",
    lastAsked: (run) => asked.get(keyOf(run)) ?? null,
    isMadeOf: (out, fingerprint) => made.get(out)?.has(fingerprint) === true,
  };
}
