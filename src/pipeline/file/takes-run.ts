import { isLatest } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import type { Job } from "./job-schema.ts";

/** Whether a run is one of those that a job archives, by its name: of INSTANCE/latest any of the instance, for it was once. */
export function takesRun(
  { run: one, runs }: Pick<Job, "run" | "runs">,
  { instanceId, runId }: RunRef,
): boolean {
  if (one !== undefined) return one.instanceId === instanceId && (isLatest(one) || one.runId === runId);
  if (runs === undefined || !runs.instances.some((pattern) => pattern.matches(instanceId))) return false;
  return !runs.exclude.some(({ instance, run }) => instance.matches(instanceId) && run.matches(runId));
}
