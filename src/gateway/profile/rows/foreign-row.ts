import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import { planRows } from "./row-plan.ts";
import { rowUndoer } from "./undo-row.ts";

/**
 * The gateway's own row again, from the canonical line that a map made of it: the map run backwards. What cannot be told
 * any more is the spelling of numbers and escapes, blanks, and the order of keys; an empty value of an optional column is
 * left out, one of another column written as the column has it. Throws by name where a word stands for two values.
 */
export function foreignRow(table: Table, map: RowMap, canonicalLine: string): string {
  return rowUndoer(planRows(table, map, { instanceId: "", runId: "" }))(canonicalLine);
}
