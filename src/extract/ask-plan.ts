import type { SurveyRecord } from "../archive/journal.ts";
import { windowKey } from "./held-window.ts";
import { type AbsentPlan, type FetchPlan, type PlanInput, planTable } from "./plan.ts";
import type { CountRows } from "./run-outlook.ts";

/** Who answers the planner's questions. */
export interface PlanAsks {
  /** Undefined where the gateway does not count rows in windows. */
  readonly countRows: CountRows | undefined;
  /** Passes over all of the table; undefined where nothing may be fetched. */
  readonly survey: (() => Promise<SurveyRecord | "absent">) | undefined;
}

type Known = Omit<PlanInput, "isCounted">;

/** Answers the planner's questions until it knows what to do; null where that takes a survey, and none may be made. */
export async function askPlan(
  input: Known,
  asks: PlanAsks & { readonly survey: NonNullable<PlanAsks["survey"]> },
): Promise<AbsentPlan | FetchPlan>;
export async function askPlan(input: Known, asks: PlanAsks): Promise<AbsentPlan | FetchPlan | null>;
export async function askPlan(
  input: Known,
  { countRows, survey }: PlanAsks,
): Promise<AbsentPlan | FetchPlan | null> {
  const counts = new Map<string, number>();
  let surveyed: SurveyRecord | "absent" | undefined;
  for (;;) {
    const answers = surveyed === undefined ? { counts } : { counts, survey: surveyed };
    const step = planTable({ ...input, isCounted: countRows !== undefined }, answers);
    if (step.kind === "survey") {
      if (survey === undefined) return null;
      surveyed = await survey();
    } else if (step.kind === "count") {
      for (const window of step.windows) {
        counts.set(windowKey(window), await countRows!(window.from, window.to));
      }
    } else {
      return step;
    }
  }
}
