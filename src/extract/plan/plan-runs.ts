import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunToArchive } from "../choose/finished-runs.ts";
import { SeenSource } from "../proof/seen-source.ts";
import { planRun, type RunPlan, type RunPlanInput } from "./plan-run.ts";

/** A run with what its job would do, or why that cannot be said. */
export type PlannedRun = { readonly run: RunToArchive } & (
  | { readonly kind: "plan"; readonly plan: RunPlan }
  | { readonly kind: "failed"; readonly error: RunvaultError }
  /** Nothing at the source names it. */
  | { readonly kind: "not-listed" }
);

/** What is planned, and how; what is known of the source is kept from one run to the next. */
export interface PlanRunsJob extends Omit<RunPlanInput, "run" | "seen" | "archive"> {
  readonly archive: Archive | null;
  readonly runs: readonly RunToArchive[];
  /** Hears of a run ahead of its plan, with its place among all, counted from 1. */
  readonly onRun: (run: RunToArchive, nth: number) => void;
}

/**
 * Plans runs one after another, as `archiveRuns` would archive them; fetches and writes nothing. An error that concerns
 * the job ends it. Gives the runs that were not tried. Throws the signal's reason.
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
