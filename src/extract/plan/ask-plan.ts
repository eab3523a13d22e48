import type { ScanRecord } from "../../archive/write/journal.ts";
import type { CountRows } from "../run/run-horizon.ts";
import { windowKey } from "./held-window.ts";
import {
  type AbsentPlan,
  type FetchPlan,
  type LapsedPlan,
  type PlanInput,
  planTable,
  type RestoreStep,
  type SplitStep,
} from "./plan.ts";

/** How to answer the planner's questions. */
export interface PlanAsks {
  /** Undefined if the gateway does not count rows in windows. */
  readonly countRows: CountRows | undefined;
  /** Reads the whole table; undefined if nothing may be fetched. */
  readonly fullScan: (() => Promise<ScanRecord | "absent">) | undefined;
  /** Splits a held segment; undefined if nothing may be changed. */
  readonly split: ((step: SplitStep) => Promise<void>) | undefined;
  /** Brings back proven rows; undefined if nothing may be changed. */
  readonly restore: ((step: RestoreStep) => Promise<void>) | undefined;
}

/** The answers for a table that the source is known not to have: nothing is asked. */
export const saidNone = {
  countRows: undefined,
  fullScan: async () => "absent" as const,
  split: undefined,
  restore: undefined,
} satisfies PlanAsks;

type Known = Omit<PlanInput, "isCounted" | "maySplit">;

/** The plan for a table. */
export type TablePlan = AbsentPlan | LapsedPlan | FetchPlan;

/** Answers the planner's questions until it has a plan; null if that needs a full scan and none is allowed. */
export async function askPlan(
  input: Known,
  asks: PlanAsks & { readonly fullScan: NonNullable<PlanAsks["fullScan"]> },
): Promise<TablePlan>;
export async function askPlan(input: Known, asks: PlanAsks): Promise<TablePlan | null>;
export async function askPlan(
  input: Known,
  { countRows, fullScan, split, restore }: PlanAsks,
): Promise<TablePlan | null> {
  const counts = new Map<string, number>();
  const restored = new Set<string>();
  let scanned: ScanRecord | "absent" | undefined;
  for (;;) {
    const answers = { counts, restored, ...(scanned === undefined ? {} : { fullScan: scanned }) };
    const known = { ...input, isCounted: countRows !== undefined, maySplit: split !== undefined };
    const step = planTable(known, answers);
    if (step.kind === "scan") {
      if (fullScan === undefined) return null;
      scanned = await fullScan();
    } else if (step.kind === "count") {
      for (const window of step.windows) {
        counts.set(windowKey(window), await countRows!(window.from, window.to));
      }
    } else if (step.kind === "split") {
      await split!(step);
    } else if (step.kind === "restore") {
      await restore!(step);
      for (const { file } of step.segments) restored.add(file);
    } else {
      return step;
    }
  }
}
