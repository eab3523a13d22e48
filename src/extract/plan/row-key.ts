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
  const seq = /"seq":\s*"(\d{1,20})"/.exec(line)?.[1];
  return seq === undefined ? undefined : BigInt(seq).toString();
}

/** A line without the seq that it has only here. */
export function withoutSeq(line: string): string {
  return line.replace(/"seq":"\d*"/, '"seq":"0"');
}
