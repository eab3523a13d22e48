import { RunvaultError } from "../../model/error.ts";
import { type Table, type TableName, tables } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";

/**
 * The tables of a job: those named, or all that the source's description mentions, including those it is known not to have.
 * Throws `invalid_argument` for a named table that is not described.
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
      `${by} does not describe ${unknown.join(", ")}, so the gateway is not asked for it`,
      { scope: "job", hint: `It describes ${[...known].join(", ")}. Add the table to it, or leave it out.` },
    );
  }
  return tables.filter(({ name }) => known.has(name) && (named === undefined || named.includes(name)));
}

/** True for a table that the gateway does not have, according to the source's description. */
export function isSaidNone({ described }: Pick<HistorySource, "described">, { name }: Table): boolean {
  return described?.none.includes(name) === true;
}
