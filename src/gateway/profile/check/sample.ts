import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Nanoseconds } from "../../../model/time.ts";
import { instantIn } from "../../rest/field-values.ts";
import { type JsonNode, type JsonObject, nodeAt } from "./json-node.ts";

/** A row as received, and its time as the profile reads it; undefined if the field is not a time. */
export interface SampleRow {
  readonly node: JsonObject;
  readonly ts: Nanoseconds | undefined;
}

export function sampleOf(rows: readonly JsonObject[], map: RowMap): SampleRow[] {
  return rows.map((node) => ({ node, ts: timeOf(node, map) }));
}

function timeOf(row: JsonObject, map: RowMap): Nanoseconds | undefined {
  const source = map.columns.ts_event;
  if (source?.kind !== "field") return undefined;
  const text = scalarText(nodeAt(row, source.path));
  return text === undefined ? undefined : instantIn(text, source.unit ?? "ns");
}

/** A single value without its quotes. */
export function scalarText(node: JsonNode | undefined): string | undefined {
  if (node?.kind === "string") return node.value;
  return node?.kind === "number" || node?.kind === "boolean" ? node.text : undefined;
}

/** The order of rows by time; undefined if all times are equal or unknown. */
export function orderOf(rows: readonly SampleRow[]): "ascending" | "descending" | "none" | undefined {
  let rises = false;
  let falls = false;
  let before: Nanoseconds | undefined;
  for (const { ts } of rows) {
    if (ts === undefined) return undefined;
    if (before !== undefined && ts > before) rises = true;
    if (before !== undefined && ts < before) falls = true;
    before = ts;
  }
  if (rises && falls) return "none";
  if (!rises && !falls) return undefined;
  return rises ? "ascending" : "descending";
}

/** The rows of one list that the other lacks; a row that occurs twice must be there twice. */
export function missingFrom(rows: readonly SampleRow[], others: readonly SampleRow[]): SampleRow[] {
  const counts = new Map<string, number>();
  for (const { node } of others) counts.set(node.text, (counts.get(node.text) ?? 0) + 1);
  return rows.filter(({ node }) => {
    const left = counts.get(node.text) ?? 0;
    counts.set(node.text, left - 1);
    return left < 1;
  });
}

/** Rows that any answer to the same request must have: one that ends early may lack some with the last time. */
export function settled(rows: readonly SampleRow[]): readonly SampleRow[] {
  const last = rows.at(-1)?.ts;
  const before = rows.filter(({ ts }) => ts !== last);
  return before.length === 0 ? rows : before;
}
