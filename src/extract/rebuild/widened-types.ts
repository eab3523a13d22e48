import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import { decimalType, type ExactTypes, holds } from "../../model/profile/exact-types.ts";
import { extraName, extraTypes } from "../../model/profile/extra-column.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";

/**
 * Types wanted for exact columns, by table and column; null for whatever is wider than the present one. Of `extra` a type adds the
 * column, and null takes it away: the rows' segments keep what it holds.
 */
export type WantedTypes = Readonly<Partial<Record<TableName, Readonly<Record<string, string | null>>>>>;

/**
 * The types that the archive's exact columns have once those wanted are given to them. Types only ever widen, so that no
 * archived value can lose digits: throws `invalid_argument` where one does not hold the present type.
 */
export function widenedTypes(
  archive: Pick<Archive, "exactTypes">,
  wanted: WantedTypes,
): Record<TableName, ExactTypes> {
  const types = tableNames.map((table) => {
    const present = archive.exactTypes(table);
    const { [extraName]: extra, ...decimals } = wanted[table] ?? {};
    const changed = Object.entries(decimals).map(([column, type]) => [
      column,
      widenedType(`${table}.${column}`, present[column]!, type),
    ]);
    const { [extraName]: before, ...rest } = present;
    const isThere = extra === undefined ? before !== undefined : extra !== null;
    return [table, { ...rest, ...Object.fromEntries(changed), ...(isThere ? extraTypes : {}) }];
  });
  return Object.fromEntries(types) as Record<TableName, ExactTypes>;
}

function widenedType(column: string, present: string, wanted: string | null): string {
  if (wanted === null) return widest(column, present);
  if (holds(wanted, present)) return wanted;
  const { precision, scale } = decimalType(present);
  throw new RunvaultError(
    "invalid_argument",
    `${column} is ${present}, and ${wanted} cannot hold all of its values`,
    {
      hint: `Choose a wider type: ${column} needs at least ${precision - scale} digits before the point and ${scale} after it, at most ${mostDigits} in all.`,
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

/** What a DECIMAL has room for. */
const mostDigits = 38;
const tokenDecimals = 18;
