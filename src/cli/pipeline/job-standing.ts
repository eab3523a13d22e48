import { nextStarts } from "../../pipeline/file/cron.ts";
import type { JobFile } from "../../pipeline/file/job-files.ts";
import type { EndedRecord, JobHistory } from "../../pipeline/record/job-history.ts";
import type { RecordedError, ResultLine, Trouble } from "../../pipeline/record/job-record.ts";
import type { FoundRecord } from "../../pipeline/record/read-records.ts";
import { twoIntervalsMs } from "../../pipeline/record/staleness.ts";
import { stateWords } from "./list-jobs.ts";

/** An execution in a job's status. */
interface Told {
  readonly id: string;
  readonly startedAt: string;
  readonly pid: number;
  readonly host: string;
}

interface EndedTold extends Told {
  readonly endedAt: string;
  readonly seconds: number;
  readonly exit: number;
  readonly words: string;
  readonly results: ResultLine["results"];
  readonly error: RecordedError | null;
}

/** The status of one job. */
export interface JobStanding {
  readonly job: string;
  /** As named on the command line; null for jobs from an archive's records. */
  readonly file: string | null;
  readonly lastSuccess: EndedTold | null;
  readonly lastResult: EndedTold | null;
  readonly running: (Told & { readonly deadline: string | null }) | null;
  /** The newest execution, if its process is gone and left no result. */
  readonly died: Told | null;
  /** By the job file's schedule; null without one. */
  readonly nextStart: string | null;
  readonly timezone: string | null;
  /** Maximum age of the last success; null for none. */
  readonly maxAgeMs: number | null;
  readonly late: "never" | "too_old" | null;
  /** Troubles at the end of the last finished execution. */
  readonly troubles: readonly Pick<Trouble, "key" | "text" | "hint" | "since">[];
}

/** The status that follows from a job's records and schedule. */
export function standingOf(
  history: JobHistory,
  file: JobFile | null,
  maxAgeMs: number | null,
  now: Date,
): JobStanding {
  const { job, newest, running, lastEnded, lastSuccess } = history;
  const schedule = file?.job.schedule;
  const allowedMs = maxAgeMs ?? (schedule === undefined ? null : twoIntervalsMs(schedule, now));
  const ageMs = lastSuccess === null ? null : now.getTime() - Date.parse(lastSuccess.result.at);
  return {
    job,
    file: file?.file ?? null,
    lastSuccess: lastSuccess === null ? null : endedTold(lastSuccess),
    lastResult: lastEnded === null ? null : endedTold(lastEnded),
    running: running === null ? null : { ...told(running), deadline: running.begin.deadline },
    died: newest?.state === "died" ? told(newest) : null,
    nextStart: schedule === undefined ? null : (nextStarts(schedule, 1, now)[0]?.toISOString() ?? null),
    timezone: schedule?.timezone ?? null,
    maxAgeMs: allowedMs,
    late: ageMs === null ? "never" : allowedMs !== null && ageMs > allowedMs ? "too_old" : null,
    troubles: (lastEnded?.result.troubles ?? [])
      // resolved ones are kept only until they are reported
      .filter(({ mended }) => mended === null)
      .map(({ key, text, hint, since }) => ({ key, text, hint, since })),
  };
}

function told({ id, begin: { at, pid, host } }: FoundRecord): Told {
  return { id, startedAt: at, pid, host };
}

function endedTold(record: EndedRecord): EndedTold {
  const { at, seconds, exit, results, error } = record.result;
  return { ...told(record), endedAt: at, seconds, exit, words: stateWords(record), results, error };
}
