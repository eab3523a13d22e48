import type { Archive } from "../../archive/archive.ts";
import { knownSource } from "../../archive/sources.ts";
import { RunLists } from "../../extract/choose/run-lists.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { earlierOf } from "../../model/time.ts";
import type { Job } from "../file/job-schema.ts";
import { skewText } from "./clock-skew.ts";
import { executionsBefore } from "./execution-before.ts";
import { type JobMeans, wantedProof } from "./job-means.ts";
import { chooseJobRuns, type JobRuns } from "./job-runs.ts";

/** The current runs of a job. */
export interface ChosenNow {
  readonly runs: JobRuns;
  readonly lists: RunLists;
  /** A warning about the gateway's clock; null if it is close enough to ours. */
  readonly skew: string | null;
}

/**
 * Chooses the runs that an execution would work on, by the gateway's lists and the archive (null if there is none yet).
 * Writes nothing. Throws if no list is available.
 */
export async function chooseNow(
  job: Job,
  gateway: Gateway,
  archive: Archive | null,
  { clock, signal }: Pick<JobMeans, "clock" | "signal">,
): Promise<ChosenNow> {
  const now = clock();
  const before =
    archive === null ? null : await executionsBefore(archive.layout, job.name, now - job.recheck.ns, now);
  const known = archive === null ? null : await knownSource(archive, gateway.label);
  const { finished_status: words } = job.gateway;
  const lists = new RunLists(gateway, {
    finishedStatus: words.length === 0 ? (known?.finishedStatus ?? []) : words,
    marksFinal: known?.marksFinal,
    settled: () => earlierOf(clock(), gateway.now?.()) - job.settle.ns,
  });
  const runs = await chooseJobRuns({
    ...{ job, lists, archive, source: gateway.label, now, asked: wantedProof(job), signal },
    lastAsked: before?.lastAsked ?? (() => null),
    failedBefore: before?.failed ?? (() => false),
    leftBefore: before?.left ?? [],
    removedUpTo: before?.removedUpTo ?? null,
  });
  return { runs, lists, skew: skewText(clock(), gateway.now?.(), job.settle.ns) };
}
