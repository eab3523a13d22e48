import { RunvaultError } from "../../model/error.ts";
import { type Table, type TableName, tables } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";

/**
 * The tables that a job is about: those that are named, or all that the source is described to have, with those that it is
 * known not to have. Throws `invalid_argument` where one is named that nothing describes.
 */
export function wantedTables(
  { described }: Pick<HistorySource, "described">,
  named: readonly TableName[] | undefined,
): readonly Table[] {
  if (described === undefined)
    return tables.filter(({ name }) => named === undefined || named.includes(name));
  const known = new Set([...described.tables, ...described.none]);
  const unknown = (named ?? []).filter((name) => !known.has(name));
  if (unknown.length > 0) {
    const by = described.by === undefined ? "the profile" : `the profile ${described.by}`;
    throw new RunvaultError(
      "invalid_argument",
      `${by} does not describe ${unknown.join(", ")}, so that the gateway is not asked for it`,
      { scope: "job", hint: `It describes ${[...known].join(", ")}. Add the table to it, or leave it out.` },
    );
  }
  return tables.filter(({ name }) => known.has(name) && (named === undefined || named.includes(name)));
}

/** True for a table that the gateway does not have, by the source's description. */
export function isSaidNone({ described }: Pick<HistorySource, "described">, { name }: Table): boolean {
  return described?.none.includes(name) === true;
}
