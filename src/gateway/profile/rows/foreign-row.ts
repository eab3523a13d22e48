import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import { planRows } from "./row-plan.ts";
import { rowUndoer } from "./undo-row.ts";

/**
 * Restores the gateway's own row from the canonical line that a map made of it. The spelling of numbers and escapes,
 * white space and the order of keys are lost. Empty values of optional columns are left out; others are written
 * as in the column. Throws with the name if a word stands for two values.
 */
export function foreignRow(table: Table, map: RowMap, canonicalLine: string): string {
  return rowUndoer(planRows(table, map, { instanceId: "", runId: "" }))(canonicalLine);
}
