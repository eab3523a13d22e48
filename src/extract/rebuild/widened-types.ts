import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import { decimalType, type ExactTypes, holds, mostDigits } from "../../model/profile/exact-types.ts";
import { extraName, extraTypes } from "../../model/profile/extra-column.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";

/**
 * Types wanted for exact columns, by table and column; null for whatever is wider than the present one. Of `extra` a type adds the
 * column, and null takes it away: the rows' segments keep what it holds.
 */
export type WantedTypes = Readonly<Partial<Record<TableName, Readonly<Record<string, string | null>>>>>;

/** A column that is to have another type. */
export interface ChangedColumn {
  readonly table: TableName;
  readonly column: string;
  readonly present: string;
  readonly type: string;
}

/** The types that an archive's columns are to have. */
export interface WidenedTypes {
  readonly exactTypes: Record<TableName, ExactTypes>;
  /** Columns that lose digits on one side of the point to the other: only where no archived value needs them. */
  readonly shifted: readonly ChangedColumn[];
}

/**
 * The types that the archive's exact columns have once those wanted are given to them. No archived value can lose digits:
 * throws `invalid_argument` where a type does not hold the present one, unless it has as many digits as there are.
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

/** The refusal of a type that does not hold what its column does. */
export function cannotHold({ table, column: name, present, type }: ChangedColumn): RunvaultError {
  const column = `${table}.${name}`;
  const { precision, scale } = decimalType(present);
  return new RunvaultError(
    "invalid_argument",
    `${column} is ${present}, and ${type} cannot hold all of its values`,
    {
      hint: `Choose a type that holds what the archive has, of at most ${mostDigits} digits: ${column} has up to ${precision - scale} before the point and ${scale} after it.`,
    },
  );
}

/** As many digits as there are, with at least the decimals that tokens are counted in. */
function widest(column: string, present: string): string {
  const { precision, scale } = decimalType(present);
  const wanted = `DECIMAL(${mostDigits},${Math.max(scale, tokenDecimals)})`;
  if (holds(wanted, present)) return wanted;
  throw new RunvaultError(
    "invalid_argument",
    `${column} is ${present}: its ${precision - scale} digits before the point and ${tokenDecimals} after it make more than ${mostDigits}`,
    { hint: `Name the type, as ${column}=WIDTH,SCALE.` },
  );
}

const tokenDecimals = 18;
