import { nextStarts } from "../file/cron.ts";
import type { JobSchedule } from "../file/job-schema.ts";
import type { EndedRecord, JobHistory } from "../record/job-history.ts";

/** A start of a schedule without an execution. */
export interface MissedStart {
  readonly at: string;
  readonly why: string;
}

/** Most starts reported: the last ones. */
const mostTold = 10;
/** Most starts examined: a month of hourly ones. */
const mostStarts = 1_000;

/**
 * Scheduled starts between the previous execution and this one, by the records alone; this execution serves the last of
 * them. Empty if there was no previous one.
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
  return `the previous execution ran until ${last.result.at}`;
}
