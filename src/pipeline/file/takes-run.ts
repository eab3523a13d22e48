import type { RunRef } from "../../model/source.ts";
import type { Job } from "./job-schema.ts";

/** Whether a run is one of those that a job archives, by its name. */
export function takesRun(
  { run: one, runs }: Pick<Job, "run" | "runs">,
  { instanceId, runId }: RunRef,
): boolean {
  if (one !== undefined) return one.instanceId === instanceId && one.runId === runId;
  if (runs === undefined || !runs.instances.some((pattern) => pattern.matches(instanceId))) return false;
  return !runs.exclude.some(({ instance, run }) => instance.matches(instanceId) && run.matches(runId));
}
