import { parseJson } from "../../model/outside-json.ts";
import type { Table } from "../../model/profile/table.ts";
import { lineHash } from "../../row/row-hash.ts";
import { comparableLine } from "../../row/same-line.ts";
import type { Window } from "./held-window.ts";

/** So many rows that an answer brought, and what tells the first and the last of them from others of their instants. */
export interface Came extends Window {
  readonly rows: number;
  readonly firstKey?: string | undefined;
  readonly lastKey?: string | undefined;
}

/**
 * What tells a row from others of its instant: its seq, which it keeps when it is corrected, or its row hash where rows come
 * without one. Undefined for a line that has no seq although rows have.
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

/** A line without the seq that it has only here. */
export function withoutSeq(line: string): string {
  return line.replace(/"seq":"\d*"/, '"seq":"0"');
}
