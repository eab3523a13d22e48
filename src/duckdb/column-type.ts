import { type ExactTypes, exactType } from "../model/profile/exact-types.ts";
import type { Column, ColumnKind } from "../model/profile/table.ts";

/**
 * How DuckDB has each kind of column: its type in Parquet, and for whole numbers the type that their text is read into.
 * An exact column has a type of its own.
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

/** The DuckDB type of the whole number that a column's text is; undefined for a column of other values. */
export function wholeType({ kind }: Column): string | undefined {
  return kind === "exact" ? undefined : kinds[kind].whole;
}
