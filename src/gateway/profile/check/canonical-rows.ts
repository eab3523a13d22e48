import { RunvaultError } from "../../../model/error.ts";
import { normaliseCarefully } from "../rows/careful-row.ts";
import type { RowPlan } from "../rows/row-plan.ts";

/** Why rows cannot be made canonical, and how many of them for each reason. */
export function badReasons(plan: RowPlan, rows: readonly string[]): ReadonlyMap<string, number> {
  const reasons = new Map<string, number>();
  for (const text of rows) {
    const reason = badReason(plan, text);
    if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return reasons;
}

function badReason(plan: RowPlan, text: string): string | undefined {
  try {
    const row = normaliseCarefully(plan, text);
    return row.kind === "bad" ? row.row.reason : undefined;
  } catch (thrown) {
    // for fields that the profile freezes
    if (thrown instanceof RunvaultError && thrown.code === "malformed_row") return thrown.message;
    throw thrown;
  }
}
