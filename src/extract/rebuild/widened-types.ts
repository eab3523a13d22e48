import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import { decimalType, type ExactTypes, holds, mostDigits } from "../../model/profile/exact-types.ts";
import { extraName, extraTypes } from "../../model/profile/extra-column.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";

/**
 * Types wanted for exact columns, by table and column; null for the widest that extends the present one. For `extra`, a
 * type adds the column and null removes it; the rows' segments keep its values.
 */
export type WantedTypes = Readonly<Partial<Record<TableName, Readonly<Record<string, string | null>>>>>;

/** A column whose type changes. */
export interface ChangedColumn {
  readonly table: TableName;
  readonly column: string;
  readonly present: string;
  readonly type: string;
}

/** The types that an archive's columns will have. */
export interface WidenedTypes {
  readonly exactTypes: Record<TableName, ExactTypes>;
  /** Columns that give up digits on one side of the point: possible only if no archived value needs them. */
  readonly shifted: readonly ChangedColumn[];
}

/**
 * The types of the archive's exact columns after the wanted change. No archived value can lose digits:
 * throws `invalid_argument` if a type cannot hold the present one, unless it has the maximum number of digits.
 */
export function widenedTypes(archive: Pick<Archive, "exactTypes">, wanted: WantedTypes): WidenedTypes {
  const shifted: ChangedColumn[] = [];
  const types = tableNames.map((table) => {
    const present = archive.exactTypes(table);
    const { [extraName]: extra, ...decimals } = wanted[table] ?? {};
    const changed = Object.entries(decimals).map(([column, wantedType]) => {
      const before = present[column]!;
      const type = wantedType ?? widest(`${table}.${column}`, before);
      if (!holds(type, before)) {
        const change = { table, column, present: before, type };
        if (decimalType(type).precision < mostDigits) throw cannotHold(change);
        shifted.push(change);
      }
      return [column, type];
    });
    const { [extraName]: before, ...rest } = present;
    const isThere = extra === undefined ? before !== undefined : extra !== null;
    return [table, { ...rest, ...Object.fromEntries(changed), ...(isThere ? extraTypes : {}) }];
  });
  return { exactTypes: Object.fromEntries(types) as Record<TableName, ExactTypes>, shifted };
}

/** The error for a type that cannot hold its column's values. */
export function cannotHold({ table, column: name, present, type }: ChangedColumn): RunvaultError {
  const column = `${table}.${name}`;
  const { precision, scale } = decimalType(present);
  return new RunvaultError(
    "invalid_argument",
    `${column} is ${present}, and ${type} cannot hold all of its values`,
    {
      hint: `Choose a type of at most ${mostDigits} digits that can hold the archive's values: ${column} has up to ${precision - scale} before the point and ${scale} after it.`,
    },
  );
}

/** The widest type, with at least as many decimals as crypto tokens have. */
function widest(column: string, present: string): string {
  const { precision, scale } = decimalType(present);
  const wanted = `DECIMAL(${mostDigits},${Math.max(scale, tokenDecimals)})`;
  if (holds(wanted, present)) return wanted;
  throw new RunvaultError(
    "invalid_argument",
    `${column} is ${present}: its ${precision - scale} digits before the point and ${tokenDecimals} after it are more than ${mostDigits}`,
    { hint: `Name the type as ${column}=WIDTH,SCALE.` },
  );
}

const tokenDecimals = 18;
