import { RunvaultError } from "../error.ts";
import type { RowRequest } from "../source.ts";
import type { TimeBounds } from "../time.ts";
import { filterRefused } from "../usual-errors.ts";
import { type FilterName, type Table, tableNamed } from "./table.ts";

/** A filter and the one value that its column must have. */
export type FilterValue = readonly [FilterName, string];

/** The table and the set filters of a request for rows. Throws `invalid_argument` if they do not fit together. */
export function checkedRows({ table: name, limit, filters }: RowRequest): {
  readonly table: Table;
  readonly filters: readonly FilterValue[];
} {
  const table = tableNamed(name);
  if (limit !== undefined) requireLimit(limit);
  return { table, filters: setFilters(table, filters ?? {}) };
}

/** Throws `invalid_argument` for an impossible limit; `given` is the text as the user wrote it. */
export function requireLimit(limit: number, given = String(limit)): void {
  if (Number.isSafeInteger(limit) && limit > 0) return;
  throw new RunvaultError("invalid_argument", `limit must be a whole number from 1, not ${given}`);
}

/** The filters in use. Throws `invalid_argument` for one that does not apply to the table. */
export function setFilters(
  table: Table,
  filters: Readonly<Partial<Record<FilterName, string | undefined>>>,
): FilterValue[] {
  const given = Object.entries(filters) as [FilterName, string | undefined][];
  return given.flatMap(([name, value]) => {
    if (value === undefined) return [];
    requireFilter(table, name);
    return [[name, value] as const];
  });
}

/** Throws `invalid_argument` for a filter that does not apply to the table. */
export function requireFilter(table: Table, name: FilterName): void {
  if (!table.filters.includes(name)) throw filterRefused(name, table);
}

/** Throws `invalid_argument` for bounds that are swapped. */
export function requireOrder({ from, to }: TimeBounds): void {
  if (from === undefined || to === undefined || from <= to) return;
  throw new RunvaultError("invalid_argument", `from ${from} is after to ${to}`);
}
