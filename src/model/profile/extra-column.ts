import type { ExactTypes } from "./exact-types.ts";
import type { Column, Table, TableName } from "./table.ts";

/**
 * The member at the end of a line for fields without a column, and the Parquet column of its JSON text: NULL for a line
 * without one, because the empty text is not JSON.
 */
export const extraName = "extra";
const extraType = "VARCHAR";

/** The entry in a table's types that says that its Parquet has the column. */
export const extraTypes: ExactTypes = { [extraName]: extraType };

/** Whether Parquet of these types has the column. */
export function hasExtraColumn(types: ExactTypes): boolean {
  return types[extraName] === extraType;
}

/** Whether a table's `extra` can have this type; all other columns have decimal types. */
export function isExtraType(column: string, type: string): boolean {
  return column === extraName && type === extraType;
}

const extraColumn: Column = {
  name: extraName,
  scalar: "string",
  kind: "string",
  freeText: true,
  exactType: undefined,
};

/** The columns that a table's Parquet of these types has. */
export function storedColumns({ columns }: Pick<Table, "columns">, types: ExactTypes): readonly Column[] {
  return hasExtraColumn(types) ? [...columns, extraColumn] : columns;
}

/** The note for a table whose rows may have `extra` but whose Parquet has no column for it. */
export function keptInSegments(name: TableName): string {
  return `fields of ${name} that no column takes stay in its segments: \`runvault maintain rebuild --extra ${name}\` adds them to Parquet`;
}
