import { RunvaultError } from "../../../model/error.ts";
import type { BadRow } from "../../../row/bad-row.ts";
import { columnText } from "./column-text.ts";
import {
  type ForeignMember,
  type ForeignObject,
  type ForeignValue,
  foreignJson,
  NotARow,
  readForeignRow,
  shownValue,
} from "./foreign-json.ts";
import { type FieldColumn, type PathNode, type RowPlan, shownPath, shownPlace, wordKey } from "./row-plan.ts";

/** The result of reading a text as a row. `unknown` has the paths of fields without a column. */
export type CarefulRow =
  | { readonly kind: "row"; readonly line: string; readonly unknown: readonly (readonly string[])[] }
  | { readonly kind: "bad"; readonly row: BadRow; readonly ts: string | undefined; readonly isTorn: boolean };

/**
 * Makes any row canonical, or says why it is bad. This slow path is the authority: the kernel hands it every row
 * that it is not sure about. Throws `malformed_row` if fields are frozen and one is unknown.
 */
export function normaliseCarefully(plan: RowPlan, text: string): CarefulRow {
  const values: (ForeignValue | undefined)[] = Array.from(plan.leaves, () => undefined);
  let row: ForeignObject;
  try {
    row = readForeignRow(text);
  } catch (thrown) {
    if (!(thrown instanceof NotARow)) throw thrown;
    return { kind: "bad", row: { reason: thrown.message, text }, ts: undefined, isTorn: thrown.isTorn };
  }
  const unknown: (readonly string[])[] = [];
  const rest = takeFields(plan, plan.root, row, values, unknown);
  try {
    const fields = plan.columns.map((column) => {
      const value = column.kind === "fixed" ? column.text : fieldText(column, values[column.leaf]);
      return `"${column.column.name}":${value}`;
    });
    if (rest.length > 0) fields.push(`"extra":${foreignJson({ kind: "object", members: rest })}`);
    return { kind: "row", line: `{${fields.join(",")}}`, unknown };
  } catch (thrown) {
    if (!(thrown instanceof NotARow)) throw thrown;
    return { kind: "bad", row: { reason: thrown.message, text }, ts: timeOf(plan, values), isTorn: false };
  }
}

/** A field's text in the canonical line. Throws NotARow with the column, the field and its value. */
export function fieldText(column: FieldColumn, value: ForeignValue | undefined): string {
  const { optional, words } = column;
  if (value === undefined) {
    if (optional) return column.empty;
    throw new NotARow(`${shownPlace(column)} is missing`);
  }
  if (value.kind === "word" && value.text === "null") {
    if (column.takesNull) return column.empty;
    throw new NotARow(`${shownPlace(column)} is null`);
  }
  if (words !== undefined) {
    const key = wordKey(value);
    const word = words.find((candidate) => candidate.key === key);
    if (word !== undefined) return word.text;
    const known = words.slice(0, 10).map(({ wire }) => JSON.stringify(wire));
    if (words.length > 10) known.push("…");
    throw new NotARow(
      `${shownPlace(column)}: ${shownValue(value)} is not in the profile's words: ${known.join(", ")}`,
    );
  }
  try {
    return columnText(column, value);
  } catch (thrown) {
    if (!(thrown instanceof NotARow)) throw thrown;
    throw new NotARow(`${shownPlace(column)}: ${thrown.message}`);
  }
}

/** The row's time in nanoseconds, if its field alone gives it. */
function timeOf(plan: RowPlan, values: readonly (ForeignValue | undefined)[]): string | undefined {
  const column = plan.columns.find((candidate) => candidate.column.name === "ts_event");
  if (column?.kind !== "field") return undefined;
  try {
    return fieldText(column, values[column.leaf]).slice(1, -1);
  } catch (thrown) {
    if (thrown instanceof NotARow) return undefined;
    throw thrown;
  }
}

/** Passes each field to its leaf, and returns members without a column. */
function takeFields(
  plan: RowPlan,
  node: PathNode,
  object: ForeignObject,
  values: (ForeignValue | undefined)[],
  unknown: (readonly string[])[],
): ForeignMember[] {
  const rest: ForeignMember[] = [];
  const keep = (name: string, value: ForeignValue, isPath: boolean) => {
    const path = [...node.path, name];
    if (plan.freezes) {
      // nothing is lost with an object that is null or empty
      if (isPath && (foreignJson(value) === "null" || foreignJson(value) === "{}")) return;
      throw frozen(plan, path);
    }
    rest.push({ name, value });
    unknown.push(path);
  };
  for (const { name, value } of object.members) {
    const entry = node.entries.get(name);
    switch (entry?.kind) {
      case undefined:
        keep(name, value, false);
        break;
      case "leaf":
        values[entry.leaf] = value;
        break;
      case "node":
        if (value.kind !== "object" || value.members.length === 0) {
          keep(name, value, true);
        } else {
          const members = takeFields(plan, entry.node, value, values, unknown);
          if (members.length > 0) rest.push({ name, value: { kind: "object", members } });
        }
        break;
      case "dropped":
        break;
    }
  }
  return rest;
}

function frozen({ table }: RowPlan, path: readonly string[]): RunvaultError {
  return new RunvaultError(
    "malformed_row",
    `rows of ${table.name} have a field ${shownPath(path)} that no column takes, and the profile says fields: freeze`,
    {
      place: { table: table.name },
      hint: "In the profile, use the field in a column, drop it, or write fields: keep.",
    },
  );
}
