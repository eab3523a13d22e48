import type { RunRef } from "../../../../model/source.ts";
import { jsonOf, type Told } from "../../check/asker.ts";
import { arraysIn, type JsonNode, type JsonObject, readJsonText } from "../../check/json-node.ts";
import type { AskablePath } from "./known-paths.ts";
import type { SampleAnswer } from "./sample-asker.ts";

/** Rows of a table, and the answer that contained them. */
export interface FoundRows extends SampleAnswer {
  readonly at: AskablePath;
  readonly run: RunRef;
  readonly around: JsonNode | undefined;
  readonly array: readonly string[] | undefined;
  readonly rows: readonly JsonObject[];
}

/** The rows in an answer: an array of objects, or an object per line; undefined if there are none. */
export function rowsIn(told: Told): Pick<FoundRows, "around" | "array" | "rows"> | undefined {
  const around = jsonOf(told);
  for (const [array, items] of arraysIn(around)) {
    const rows = items.filter((item) => item.kind === "object");
    if (rows.length > 0 && rows.length === items.length) return { around, array, rows };
  }
  // a document without rows is not a row
  if (around?.kind === "object" && told.mediaType === "application/json") return undefined;
  const lines = told.text.split("\n").filter((line) => line.trim() !== "");
  // the last line of a truncated answer is incomplete
  if (told.cut) lines.pop();
  const rows = lines.map((line) => readJsonText(line)).filter((node) => node?.kind === "object");
  if (rows.length === 0 || rows.length !== lines.length) return undefined;
  return { around: undefined, array: undefined, rows };
}
