import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import { planRows } from "./row-plan.ts";
import { rowUndoer } from "./undo-row.ts";

/**
 * Restores the gateway's own row from the canonical line that a map made of it. Lost are the spelling of numbers and
 * escapes, blanks, and the order of keys. Empty values of optional columns are left out; other empty values are written
 * as the column has them. Throws with the name if a word stands for two values.
 */
export function foreignRow(table: Table, map: RowMap, canonicalLine: string): string {
  return rowUndoer(planRows(table, map, { instanceId: "", runId: "" }))(canonicalLine);
}
