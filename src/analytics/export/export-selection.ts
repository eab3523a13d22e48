import { doubleSql } from "../../duckdb/double-sql.ts";
import { identifier, isAmong, literal } from "../../duckdb/sql.ts";
import { whereSql } from "../../duckdb/where-sql.ts";
import { RunvaultError } from "../../model/error.ts";
import { type FilterName, filterNames, type Table } from "../../model/profile/table.ts";
import type { TimeBounds } from "../../model/time.ts";
import type { DecimalForm } from "./export-format.ts";

/** Which rows of the tables, and how their decimals are given. */
export interface ExportSelection extends TimeBounds {
  /** Exact values that the columns of these names must have. */
  readonly filters: Partial<Record<FilterName, string>>;
  /** Only rows of these symbols, of tables that have symbols; the others are whole. Default: of all. */
  readonly symbols?: readonly string[] | undefined;
  readonly decimals: DecimalForm;
}

/** Throws `invalid_argument` if a filter does not apply to one of the tables, as a gateway does. */
export function refuseWrongFilters(tables: readonly Table[], selection: ExportSelection): void {
  for (const name of filterNames) {
    if (selection.filters[name] === undefined) continue;
    const without = tables.filter(({ filters }) => !filters.includes(name)).map((table) => table.name);
    if (without.length === 0) continue;
    throw new RunvaultError("invalid_argument", `${without.join(", ")} cannot be filtered by ${name}`, {
      hint: `Export ${without.length === 1 ? "that table" : "those tables"} without --${name.replace("_", "-")}.`,
    });
  }
}

/** The WHERE clause of a table, with a leading space; empty for all rows. */
export function selectionSql(table: Table, { filters, symbols, ...bounds }: ExportSelection): string {
  const where = whereSql(
    bounds,
    filterNames.flatMap((name) => {
      const value = filters[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
  if (symbols === undefined || !table.columns.some(({ name }) => name === "symbol")) return where;
  const among = isAmong(identifier("symbol"), symbols.map(literal));
  return `${where === "" ? " WHERE" : `${where} AND`} ${among}`;
}

/** The columns of a table as a SELECT list, with the decimals in the form wanted. */
export function columnsSql(table: Table, decimals: DecimalForm): string {
  if (decimals === "exact") return "*";
  const doubles = table.columns
    .filter(({ kind }) => kind === "exact")
    .map(({ name }) => `${doubleSql(identifier(name))} AS ${identifier(name)}`);
  return doubles.length === 0 ? "*" : `* REPLACE (${doubles.join(", ")})`;
}
