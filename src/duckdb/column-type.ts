import { type ExactTypes, exactType } from "../model/profile/exact-types.ts";
import type { Column, ColumnKind } from "../model/profile/table.ts";

/**
 * DuckDB's type of each kind of column: in Parquet, and for whole numbers the type for parsing their text. Exact
 * columns have individual types.
 */
const kinds: Readonly<
  Record<Exclude<ColumnKind, "exact">, { readonly type: string; readonly whole?: string }>
> = {
  uint64: { type: "UBIGINT", whole: "UBIGINT" },
  int64: { type: "BIGINT", whole: "BIGINT" },
  uint32: { type: "UINTEGER", whole: "UINTEGER" },
  timestamp: { type: "TIMESTAMP_NS", whole: "BIGINT" },
  double: { type: "DOUBLE" },
  string: { type: "VARCHAR" },
};

/** The DuckDB type of a column, in Parquet and in views. Throws `internal` for an exact column without a type. */
export function columnType({ name, kind }: Column, exactTypes: ExactTypes): string {
  if (kind !== "exact") return kinds[kind].type;
  const { precision, scale } = exactType(exactTypes, name);
  return `DECIMAL(${precision},${scale})`;
}

/** The DuckDB integer type for parsing a column's text; undefined for other columns. */
export function wholeType({ kind }: Column): string | undefined {
  return kind === "exact" ? undefined : kinds[kind].whole;
}
