import { parseJson } from "../../model/outside-json.ts";
import type { Table } from "../../model/profile/table.ts";
import { lineHash } from "../../row/row-hash.ts";
import { comparableLine } from "../../row/same-line.ts";
import type { Window } from "./held-window.ts";

/** The rows of an answer: their number, and what tells the first and the last from others with the same timestamp. */
export interface Came extends Window {
  readonly rows: number;
  readonly firstKey?: string | undefined;
  readonly lastKey?: string | undefined;
}

/**
 * Tells a row from others with the same timestamp: by its seq, which a corrected row keeps, or by its row hash if rows come
 * without seq. Undefined for a line that lacks the seq it should have.
 */
export function rowKey(table: Table, hasSeq: boolean, line: string): string | undefined {
  if (!hasSeq) return lineHash(comparableLine(table, withoutSeq(line))).toString();
  return seqOf(line);
}

/** A line's own seq; a payload may have a member of that name, too. */
function seqOf(line: string): string | undefined {
  try {
    const { seq } = parseJson(line) as { readonly seq?: unknown };
    return typeof seq === "string" && /^\d{1,20}$/.test(seq) ? BigInt(seq).toString() : undefined;
  } catch {
    return undefined;
  }
}

/** A line without the seq that it was given here. */
export function withoutSeq(line: string): string {
  return line.replace(/"seq":"\d*"/, '"seq":"0"');
}
