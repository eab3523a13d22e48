import { RunvaultError } from "../../../model/error.ts";
import { pathText } from "../field-path-schema.ts";
import { fieldText } from "./careful-row.ts";
import { type ForeignValue, NotARow } from "./foreign-json.ts";
import {
  type FieldColumn,
  type PathEntry,
  type RowPlan,
  shownPath,
  shownPlace,
  wireValue,
} from "./row-plan.ts";
import type { OnUndone } from "./undo-row.ts";

/** Why a column's values, or its empty value, cannot be converted to another map; undefined if they can. */
interface Unclear {
  readonly values: string | undefined;
  readonly empty: string | undefined;
}

/**
 * Guards the conversion of rows between maps without fetching. Throws `invalid_argument` at a value that may have had
 * several forms on the wire that the new map treats differently, and at once if the old map dropped a field that the
 * new one keeps.
 */
export function refuseUnclear(from: RowPlan, to: RowPlan, dropped: readonly (readonly string[])[]): OnUndone {
  for (const path of dropped) {
    if (entryAt(to, path).entry?.kind === "dropped") continue;
    throw refusal(
      from,
      to,
      path,
      `the old profile dropped the field ${shownPath(path)}, and the new one does not`,
    );
  }
  const known = new Map<FieldColumn, Unclear>();
  return (column, text) => {
    const unclear = known.get(column) ?? unclearOf(column, to);
    known.set(column, unclear);
    const reason = text === column.empty ? unclear.empty : unclear.values;
    if (reason === undefined) return;
    throw refusal(from, to, column.path, `${shownPlace(column)} is ${text}, and ${reason}`);
  };
}

function refusal({ table }: RowPlan, to: RowPlan, path: readonly string[], reason: string): RunvaultError {
  const text = pathText(path);
  const field = typeof text === "string" ? text : JSON.stringify(text);
  const orDropped =
    entryAt(to, path).entry === undefined
      ? `; or, if nobody needs the field, drop it in that profile: \`dropped: [{ from: ${field}, lossy: true }]\``
      : "";
  return new RunvaultError(
    "invalid_argument",
    `the stored rows of ${table.name} cannot be converted to the new profile: ${reason}`,
    {
      place: { table: table.name },
      hint: `The run is unchanged. Remove it with \`runvault rm\` and archive it again with the new profile${orDropped}.`,
    },
  );
}

function unclearOf(column: FieldColumn, to: RowPlan): Unclear {
  const { entry, isInside } = entryAt(to, column.path);
  if (entry?.kind === "dropped" || isInside) return { values: undefined, empty: undefined };
  const fields = entry?.kind === "leaf" ? columnsAt(to, entry.leaf) : undefined;
  return { values: unclearValues(column, fields), empty: unclearEmpty(column, fields) };
}

function columnsAt(plan: RowPlan, leaf: number): readonly FieldColumn[] {
  return plan.columns.flatMap((column) => (column.kind === "field" && column.leaf === leaf ? [column] : []));
}

/** A map's entry for a path. `isInside`: the path is dropped because an object around it is. */
function entryAt(
  plan: RowPlan,
  path: readonly string[],
): { entry: PathEntry | undefined; isInside: boolean } {
  let node = plan.root;
  for (const name of path.slice(0, -1)) {
    const entry = node.entries.get(name);
    if (entry?.kind === "dropped") return { entry, isInside: true };
    if (entry?.kind !== "node") return { entry: undefined, isInside: false };
    node = entry.node;
  }
  return { entry: node.entries.get(path.at(-1)!), isInside: false };
}

function unclearValues(column: FieldColumn, fields: readonly FieldColumn[] | undefined): string | undefined {
  const { kind } = column.column;
  if (column.words !== undefined) {
    const hasNumbers = column.words.some(({ wire }) => typeof wire === "number");
    return fields === undefined && hasNumbers ? untakenNumber("number") : undefined;
  }
  if (kind === "string") return undefined;
  const isInstant = kind === "timestamp" && column.unit === "rfc3339";
  if (fields === undefined) {
    return untakenNumber(isInstant ? "time" : "number");
  }
  for (const field of fields) {
    const other = field.column;
    if (other.kind === "string" || field.words !== undefined) {
      return `it is not known how the gateway wrote it, which ${other.name} has to store`;
    }
    if (isInstant) continue;
    if (kind === "double" && other.kind !== "double") {
      return `a double is rounded, but ${other.name} must be exact`;
    }
    const isSurelyText = kind === "exact" && !column.bareNumbers;
    if (other.kind === "exact" && !field.bareNumbers && !isSurelyText) {
      return `it is not known whether the gateway writes it as text, as ${other.name} requires`;
    }
  }
  return undefined;
}

function untakenNumber(what: string): string {
  return `no column takes that field any more, and it is not known how the gateway wrote the ${what}, which extra has to store`;
}

/** Why an empty value cannot be converted; undefined if all its possible wire forms mean the same in the new map. */
function unclearEmpty(column: FieldColumn, fields: readonly FieldColumn[] | undefined): string | undefined {
  const variants = emptyVariants(column);
  if (variants.length < 2) return undefined;
  const reason = "it is not known whether the gateway sent null, nothing or an empty value";
  if (fields === undefined) return reason;
  const isSame = fields.every(
    (field) => new Set(variants.map((variant) => outcome(field, variant))).size === 1,
  );
  return isSame ? undefined : `${reason}, which the new profile treats differently`;
}

function emptyVariants(column: FieldColumn): readonly (ForeignValue | undefined)[] {
  const variants: (ForeignValue | undefined)[] = [];
  if (column.optional) variants.push(undefined);
  if (column.takesNull) variants.push({ kind: "word", text: "null" });
  if (column.words !== undefined) {
    for (const { wire, text } of column.words) if (text === column.empty) variants.push(wireValue(wire));
    return variants;
  }
  switch (column.column.kind) {
    case "string":
    case "exact":
      return [...variants, { kind: "string", text: "" }];
    case "double":
      return [...variants, { kind: "string", text: "NaN" }, { kind: "word", text: "NaN" }];
    case "timestamp":
      if (column.unit === "rfc3339") return [...variants, { kind: "string", text: "1970-01-01T00:00:00Z" }];
  }
  return [...variants, { kind: "number", text: "0" }, { kind: "string", text: "0" }];
}

function outcome(field: FieldColumn, value: ForeignValue | undefined): string {
  try {
    return fieldText(field, value);
  } catch (thrown) {
    if (thrown instanceof NotARow) return "no row";
    throw thrown;
  }
}
