import { RunvaultError } from "../../../model/error.ts";
import { formatTime } from "../../../model/time.ts";
import { exactDecimal } from "./exact-decimal.ts";
import {
  type ForeignMember,
  type ForeignObject,
  type ForeignValue,
  foreignJson,
  NotARow,
  readForeignRow,
  shownValue,
} from "./foreign-json.ts";
import { type FieldColumn, type PathNode, type RowPlan, shownPath, wireValue } from "./row-plan.ts";

/** An object of a row that is being restored; nothing else refers to its contents. */
type GrowingObject = Map<string, ForeignValue | GrowingObject>;

/** Called for each restored field, with its canonical text. May throw. */
export type OnUndone = (column: FieldColumn, text: string) => void;

/**
 * Restores the gateway's own row from the plan's canonical line. Throws `archive_damaged` if the plan cannot have made
 * the line, and `invalid_argument` if two wire values share the word in the line.
 */
export function rowUndoer(plan: RowPlan, onUndone?: OnUndone): (line: string) => string {
  const columns = plan.leaves.map((leaf) => bestOf(plan, leaf.columns));
  return (line) => {
    const values = new Map(readLine(plan, line).members.map(({ name, value }) => [name, value]));
    const row: GrowingObject = new Map();
    // first, to keep the order of its members
    const extra = values.get("extra");
    if (extra !== undefined) {
      if (extra.kind !== "object") throw damaged(plan, `has ${shownValue(extra)} as extra`);
      merge(row, extra, plan.root);
    }
    for (const column of columns) {
      const { name } = column.column;
      const value = values.get(name);
      if (value === undefined) throw damaged(plan, `has no ${name}`);
      const text = foreignJson(value);
      onUndone?.(column, text);
      const wire = undoValue(plan, column, value, text);
      if (wire !== undefined) put(plan, row, column.path, wire);
    }
    return objectText(row);
  };
}

/** Of the columns that use one field, the one that preserves most of its wire form. */
function bestOf(plan: RowPlan, columns: readonly number[]): FieldColumn {
  const fields = columns.flatMap((index) => {
    const column = plan.columns[index]!;
    return column.kind === "field" ? [column] : [];
  });
  return fields.reduce((best, next) => (rankOf(next) < rankOf(best) ? next : best));
}

function rankOf({ words, column, optional }: FieldColumn): number {
  const byKind = words !== undefined ? 1 : column.kind === "string" ? 0 : column.kind === "double" ? 3 : 2;
  // of two equal columns, one that requires the field shows that it was there
  return byKind + (optional ? 0.5 : 0);
}

/** The wire value; undefined if the field was missing or may have been. */
function undoValue(
  plan: RowPlan,
  column: FieldColumn,
  value: ForeignValue,
  text: string,
): ForeignValue | undefined {
  const { kind, name } = column.column;
  if (column.words !== undefined) {
    const [word, another] = column.words.filter((candidate) => candidate.text === text);
    if (another !== undefined) {
      throw new RunvaultError(
        "invalid_argument",
        `${plan.table.name}.${name}: ${text} stands for ${JSON.stringify(word!.wire)} and for ${JSON.stringify(another.wire)}, and the archive does not say which`,
        {
          hint: "The old profile gave two values one word. Remove the run with `runvault rm` and archive it again.",
        },
      );
    }
    if (word !== undefined) return wireValue(word.wire);
    if (text !== column.empty) throw damaged(plan, `has ${text} as ${name}, which is not one of its words`);
    return column.optional ? undefined : { kind: "word", text: "null" };
  }
  if (text === column.empty && column.optional) return undefined;
  switch (kind) {
    case "string":
      if (value.kind !== "string") throw damaged(plan, `has ${shownValue(value)} as ${name}`);
      return value;
    case "double":
      if (value.kind !== "number" && !/^"(?:NaN|-?Infinity)"$/.test(text)) {
        throw damaged(plan, `has ${shownValue(value)} as ${name}`);
      }
      return value;
    case "exact": {
      const digits = textOf(plan, column, value);
      return column.bareNumbers && digits !== "" ? { kind: "number", text: digits } : value;
    }
    case "timestamp": {
      const ns = textOf(plan, column, value);
      if (column.unit === "rfc3339") return { kind: "string", text: formatTime(BigInt(ns)) };
      const shift = { ns: 0, us: -3, ms: -6, s: -9 }[column.unit];
      return { kind: "number", text: exactDecimal(ns, shift) ?? ns };
    }
    case "uint32":
      if (value.kind !== "number") throw damaged(plan, `has ${shownValue(value)} as ${name}`);
      return value;
    default:
      return { kind: "number", text: textOf(plan, column, value) };
  }
}

function textOf(plan: RowPlan, { column }: FieldColumn, value: ForeignValue): string {
  if (value.kind !== "string") throw damaged(plan, `has ${shownValue(value)} as ${column.name}`);
  const isFit = column.kind === "exact" ? /^(?:-?\d+(?:\.\d+)?)?$/ : /^-?\d+$/;
  if (!isFit.test(value.text)) throw damaged(plan, `has ${shownValue(value)} as ${column.name}`);
  return value.text;
}

/** Puts unknown fields back in their places. */
function merge(row: GrowingObject, extra: ForeignObject, node: PathNode): void {
  for (const { name, value } of extra.members) {
    const entry = node.entries.get(name);
    if (entry?.kind === "node" && value.kind === "object" && value.members.length > 0) {
      const inside: GrowingObject = new Map();
      row.set(name, inside);
      merge(inside, value, entry.node);
    } else {
      row.set(name, value);
    }
  }
}

function put(plan: RowPlan, row: GrowingObject, path: readonly string[], value: ForeignValue): void {
  let object = row;
  for (const name of path.slice(0, -1)) {
    const held = object.get(name);
    if (held !== undefined && !(held instanceof Map)) throw takenTwice(plan, path);
    const inside: GrowingObject = held ?? new Map();
    if (held === undefined) object.set(name, inside);
    object = inside;
  }
  const name = path.at(-1)!;
  if (object.has(name)) throw takenTwice(plan, path);
  object.set(name, value);
}

function takenTwice(plan: RowPlan, path: readonly string[]): RunvaultError {
  return damaged(plan, `has ${shownPath(path)} in a column and in extra`);
}

function objectText(object: GrowingObject): string {
  const members = [...object].map(
    ([name, value]) =>
      `${JSON.stringify(name)}:${value instanceof Map ? objectText(value) : foreignJson(value)}`,
  );
  return `{${members.join(",")}}`;
}

function readLine(plan: RowPlan, line: string): { readonly members: readonly ForeignMember[] } {
  try {
    return readForeignRow(line);
  } catch (thrown) {
    if (thrown instanceof NotARow) throw damaged(plan, `cannot be read: ${thrown.message}`);
    throw thrown;
  }
}

function damaged({ table }: RowPlan, what: string): RunvaultError {
  return new RunvaultError("archive_damaged", `a stored row of ${table.name} ${what}`, {
    place: { table: table.name },
    hint: "Fetch the table again: its rows do not match the profile on record.",
  });
}
