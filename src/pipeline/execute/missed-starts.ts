import { nextStarts } from "../file/cron.ts";
import type { JobSchedule } from "../file/job-schema.ts";
import type { EndedRecord, JobHistory } from "../record/job-history.ts";

/** A start of a schedule that did not come to an execution. */
export interface MissedStart {
  readonly at: string;
  readonly why: string;
}

/** The most that are told: the last ones. */
const mostTold = 10;
/** The most that are looked at: the starts of a month, once an hour. */
const mostStarts = 1_000;

/**
 * The starts of a schedule between the execution before and this one, by the records alone: the last of them is what this
 * execution is for. Nothing where there was none before.
 */
export function missedStarts(
  schedule: JobSchedule | undefined,
  { newest, lastEnded }: Pick<JobHistory, "newest" | "lastEnded">,
  now: Date,
): readonly MissedStart[] {
  if (schedule === undefined || newest === null) return [];
  const began = new Date(newest.begin.at);
  const starts = nextStarts(schedule, mostStarts, began).filter((start) => start <= now);
  return starts
    .slice(0, -1)
    .slice(-mostTold)
    .map((start) => ({ at: start.toISOString(), why: whyMissed(start, lastEnded) }));
}

function whyMissed(start: Date, last: EndedRecord | null): string {
  if (last === null || start.getTime() > Date.parse(last.result.at)) return "nothing started the job then";
  return `the execution before went on until ${last.result.at}`;
}
