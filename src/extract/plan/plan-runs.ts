import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunToArchive } from "../choose/finished-runs.ts";
import { SeenSource } from "../proof/seen-source.ts";
import { planRun, type RunPlan, type RunPlanInput } from "./plan-run.ts";

/** A run with its job's plan, or why there is none. */
export type PlannedRun = { readonly run: RunToArchive } & (
  | { readonly kind: "plan"; readonly plan: RunPlan }
  | { readonly kind: "failed"; readonly error: RunvaultError }
  /** Nothing at the source names it. */
  | { readonly kind: "not-listed" }
);

/** The runs to plan, and how; what is learned of the source is kept from one run to the next. */
export interface PlanRunsJob extends Omit<RunPlanInput, "run" | "seen" | "archive"> {
  readonly archive: Archive | null;
  readonly runs: readonly RunToArchive[];
  /** Called before each run is planned, with its position, counted from 1. */
  readonly onRun: (run: RunToArchive, nth: number) => void;
}

/**
 * Plans runs one after another, as `archiveRuns` would archive them; fetches and writes nothing. An error that concerns the
 * whole job ends it. Returns the runs that were not tried. Throws the signal's reason.
 */
export async function* planRuns(job: PlanRunsJob): AsyncGenerator<PlannedRun, readonly RunToArchive[]> {
  const { runs, signal, onRun, ...input } = job;
  const seen = new SeenSource();
  for (const [index, run] of runs.entries()) {
    onRun(run, index + 1);
    if (!run.listed) {
      yield { run, kind: "not-listed" };
      continue;
    }
    try {
      yield { run, kind: "plan", plan: await planRun({ ...input, signal, seen, run }) };
    } catch (thrown) {
      signal.throwIfAborted();
      const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
      yield { run, kind: "failed", error };
      if (error.scope === "job") return runs.slice(index + 1);
    }
  }
  return [];
}
