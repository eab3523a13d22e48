import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { ColumnSource, RowMap } from "../../../model/profile/row-map.ts";
import type { Column, Table } from "../../../model/profile/table.ts";
import { nearestName } from "../../../model/text/nearest-name.ts";
import type { KeyPath } from "../../../model/yaml/tree.ts";
import { planMessage } from "../../../row/wire/json-plan.ts";
import type { FaultContext } from "./fault-context.ts";
import { followPath, isTimestamp, kindText } from "./message-path.ts";

type FieldSource = Extract<ColumnSource, { kind: "field" }>;

/** Reports columns that the row's message cannot supply, and fields that cannot be read. */
export function checkRowFields(
  table: Table,
  map: RowMap | undefined,
  message: DescMessage,
  at: KeyPath,
  context: FaultContext,
): void {
  const read = planMessage(message);
  if ("unreadable" in read) {
    for (const { path, what } of read.unreadable) {
      context.fault(
        at,
        `has rows of ${message.typeName}, but runvault cannot yet read their field ${path} (${what})`,
        "Write an adapter for this table, or remove the table.",
      );
    }
  }
  for (const column of table.columns) {
    const source: ColumnSource = map?.columns[column.name] ?? { kind: "field", path: [column.name] };
    if (source.kind === "field") checkColumn(table, column, source, map, message, at, context);
  }
  for (const path of map?.dropped ?? []) {
    const found = followPath(message, path);
    if (!("chain" in found)) {
      context.fault(
        context.firstOf(["tables", table.name, "dropped"], ["rows", "dropped"], at),
        found.message,
        found.hint,
      );
    }
  }
}

function checkColumn(
  table: Table,
  column: Column,
  source: FieldSource,
  map: RowMap | undefined,
  message: DescMessage,
  at: KeyPath,
  context: FaultContext,
): void {
  const own: KeyPath = ["tables", table.name, "columns", column.name];
  const here = context.firstOf(own, ["rows", "columns", column.name], at);
  const isNamed = here !== at;
  const found = followPath(message, source.path);
  if (!("chain" in found)) {
    context.fault(
      here,
      isNamed
        ? found.message
        : `has no entry for the column ${column.name}, and ${message.typeName} has no field with that name`,
      isNamed
        ? found.hint
        : `Add it under tables.${table.name}.columns, with its field or as absent. ${found.hint}`,
    );
    return;
  }
  const field = found.chain.at(-1)!;
  const wrong = misfit(column, source, field, map);
  if (wrong !== undefined) context.fault(here, ...wrong);
  if (field.enum !== undefined && source.words !== undefined) {
    const names = field.enum.values.map(({ name }) => name);
    for (const { wire } of source.words) {
      if (names.includes(String(wire)) || typeof wire === "number") continue;
      const near = nearestName(String(wire), names);
      context.fault(
        context.firstOf([...own, "words", String(wire)], here),
        `is not a value of ${field.enum.typeName}`,
        near === null ? `Its values are ${names.slice(0, 20).join(", ")}.` : `Did you mean ${near}?`,
      );
    }
  }
}

const texts = ["string"];
const longs = ["int64", "uint64", "sint64", "fixed64", "sfixed64"];
const ints = ["int32", "uint32", "sint32", "fixed32", "sfixed32"];
const floats = ["double", "float"];

/** Why a field cannot be a column, and what to do. */
function misfit(
  column: Column,
  { unit, words }: FieldSource,
  field: DescField,
  map: RowMap | undefined,
): [string, string] | undefined {
  const kind = kindText(field);
  const cannot = (hint: string): [string, string] => [
    `comes from ${field.name}, which is ${kind}; runvault cannot yet read that as ${wordFor(column)}`,
    hint,
  ];
  if (field.fieldKind === "list" || field.fieldKind === "map")
    return cannot("Name a field that is not repeated.");
  if (isTimestamp(field.message)) {
    if (column.kind !== "timestamp") return cannot("Only a column of times can hold a Timestamp.");
    return unit === undefined
      ? undefined
      : [`has the unit ${unit}, but a Timestamp has its own`, "Remove unit."];
  }
  if (field.message !== undefined && kind === field.message.typeName) {
    return cannot(
      `Name a field inside it: ${field.message.fields.map(({ name }) => `${field.name}.${name}`).join(", ")}.`,
    );
  }
  if (words !== undefined) {
    return kind === "bytes" || floats.includes(kind)
      ? cannot("Words are possible for strings, integers, enums and bools.")
      : undefined;
  }
  const takes = {
    string: [...texts, ...longs, "an enum", "bytes"],
    exact: [...texts, ...longs, ...(map?.numbers === "exact" ? [...ints, "double"] : [])],
    double: [...texts, ...longs, ...ints, ...floats],
    timestamp: [...texts, ...longs, ...ints, "double"],
    uint64: [...texts, ...longs, ...ints],
    int64: [...texts, ...longs, ...ints],
    uint32: [...texts, ...longs, ...ints],
  }[column.kind];
  if (!takes.includes(kind)) {
    return cannot(
      column.kind === "exact" && (kind === "double" || ints.includes(kind))
        ? "Write `numbers: exact` to accept numbers as the gateway rounded them."
        : column.kind === "string"
          ? "Add words for its values."
          : `Name a field that is ${takes.join(", ")}.`,
    );
  }
  if (column.kind === "timestamp" && unit === "rfc3339" && kind !== "string") {
    return ["is RFC 3339, but the field is a number", "Name the unit of the number."];
  }
  return undefined;
}

function wordFor({ kind }: Column): string {
  switch (kind) {
    case "timestamp":
      return "a time";
    case "exact":
      return "an exact number";
    case "string":
      return "text";
    default:
      return "a number";
  }
}
