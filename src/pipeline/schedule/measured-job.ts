import type { EndedRecord, JobHistory } from "../record/job-history.ts";
import type { RunLine } from "../record/job-record.ts";
import type { MeasuredJob } from "../tell/metrics.ts";

/** The metrics of a job's last execution, by its record; null if none ended. Skips unreadable lines. */
export async function measuredJob({
  lastEnded,
  lastSuccess,
}: Pick<JobHistory, "lastEnded" | "lastSuccess">): Promise<MeasuredJob | null> {
  if (lastEnded === null) return null;
  const { begin, result } = lastEnded;
  return {
    ...{ begin, result, ...(await linesOf(lastEnded)) },
    lastSuccess: lastSuccess?.result.at ?? null,
    nextStart: null,
  };
}

async function linesOf(record: EndedRecord) {
  const runs: RunLine[] = [];
  let notifiersFailed = 0;
  for await (const line of record.lines()) {
    if (line.kind === "run") runs.push(line);
    else if (line.kind === "told" && line.result === "failed") notifiersFailed++;
  }
  return { runs, notifiersFailed };
}
