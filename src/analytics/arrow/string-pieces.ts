import { DuckDBTypeId } from "@duckdb/node-api";
import { inlineBytes } from "../../duckdb/raw-vector.ts";
import { identifier } from "../../duckdb/sql.ts";
import type { Table } from "../../model/profile/table.ts";
import type { ResultColumn } from "../query/query.ts";

/** Where in a chunk a column stands: in one vector, or as the pieces of its strings in several. */
export interface ColumnSpan {
  readonly first: number;
  readonly count: number;
}

/** Most pieces of a string; the last piece may have any length. */
const mostPieces = 4;

/** Each column in its own vector. */
export function wholeColumns(columns: readonly ResultColumn[]): ColumnSpan[] {
  return columns.map((_, index) => ({ first: index, count: 1 }));
}

/**
 * A select list that cuts the strings of long columns into pieces of twelve characters. Pieces of twelve bytes stand in
 * the vector itself, while longer strings must be fetched one by one, which is five times slower. `longest` comes from
 * `longestStringsSql` and only affects speed: joined again, the pieces are always the whole string.
 */
export function stringPieces(
  columns: readonly ResultColumn[],
  longest: readonly unknown[],
): { readonly list: string; readonly spans: readonly ColumnSpan[] } {
  const list: string[] = [];
  const spans = columns.map(({ name, type }, index) => {
    const first = list.length;
    const length = type.typeId === DuckDBTypeId.VARCHAR ? Number(longest[index] ?? 0) : 0;
    const count = Math.max(1, Math.min(mostPieces, Math.ceil(length / inlineBytes)));
    const column = identifier(name);
    for (let piece = 0; piece < count; piece++) {
      const rest = piece === count - 1 ? "" : `, ${inlineBytes}`;
      list.push(count === 1 ? column : `substring(${column}, ${piece * inlineBytes + 1}${rest})`);
    }
    return { first, count };
  });
  return { list: list.join(", "), spans };
}

/** Bytes of the longest string of each column in the first rows of a SELECT: a hint for speed, so that some will do. */
export function longestStringsSql(table: Table, sql: string): string {
  const lengths = table.columns.map(({ name, kind }) =>
    kind === "string" ? `max(strlen(${identifier(name)}))` : "0",
  );
  return `SELECT ${lengths.join(", ")} FROM (${sql} LIMIT 20000)`;
}
