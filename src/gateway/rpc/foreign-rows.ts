import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { RunvaultError } from "../../model/error.ts";
import type { ColumnSource, RowMap } from "../../model/profile/row-map.ts";
import type { Column, Table } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { planMessage } from "../../row/wire/json-plan.ts";
import { JsonTranscoder } from "../../row/wire/json-transcoder.ts";
import { type OddRow, RowTranscoder, type WireColumn } from "../../row/wire/row-transcoder.ts";
import { RowNormaliser } from "../profile/rows/row-normaliser.ts";
import type { PageTranscoder } from "./page-reader.ts";

/** How rows of one table and run become canonical lines: directly from the wire, or by way of JSON. */
export interface ForeignRows {
  readonly transcoder: PageTranscoder;
  /** Undefined if the transcoder's output is already canonical. */
  readonly normaliser: RowNormaliser | undefined;
}

/** The fastest way from rows of this message to the table's lines. */
export function foreignRows(
  table: Table,
  map: RowMap | undefined,
  message: DescMessage,
  run: RunRef,
  onUnknownField: (path: readonly string[]) => void,
): ForeignRows {
  const whole = map ?? ownNames(table);
  const columns = flatColumns(table, whole, message, run);
  const byJson = () => rowsByJson(table, whole, message, run, onUnknownField);
  if (columns === undefined) return byJson();
  return { transcoder: new RowTranscoder(table, columns, oddRows(byJson)), normaliser: undefined };
}

function rowsByJson(
  table: Table,
  map: RowMap,
  message: DescMessage,
  run: RunRef,
  onUnknownField: (path: readonly string[]) => void,
) {
  const read = planMessage(message);
  // a profile with such a message would not have loaded
  if ("unreadable" in read) throw new RunvaultError("internal", `${message.typeName} cannot be read`);
  return {
    transcoder: new JsonTranscoder(read.plan),
    normaliser: new RowNormaliser(table, map, run, { onUnknownField }),
  };
}

/** Rows that the direct way cannot handle go through JSON one by one, which says what is wrong with them. */
function oddRows(byJson: () => ReturnType<typeof rowsByJson>): OddRow {
  let made: ReturnType<typeof rowsByJson> | undefined;
  return (index, start, end) => {
    made ??= byJson();
    const steps = made.transcoder.transcode({ ...index, rows: 1, places: Int32Array.of(start, end) });
    let step = steps.next();
    while (!step.done) step = steps.next();
    const [json = new Uint8Array(0)] = step.value.chunks;
    return made.normaliser.row(json.subarray(0, json.byteLength - 1));
  };
}

/** The map of rows whose fields have the columns' names. */
function ownNames({ columns }: Table): RowMap {
  return {
    numbers: "text",
    fields: "keep",
    ties: "bytes",
    columns: Object.fromEntries(
      columns.map(({ name }): [string, ColumnSource] => [name, { kind: "field", path: [name] }]),
    ),
    dropped: [],
  };
}

/**
 * The source of each column, if renames, fixed values, units of whole times and words of enums and bools are enough to
 * make rows canonical and every field of the message is a column. Otherwise undefined.
 */
function flatColumns(
  table: Table,
  map: RowMap,
  message: DescMessage,
  run: RunRef,
): readonly WireColumn[] | undefined {
  if (map.fields !== "keep" || map.dropped.length > 0) return undefined;
  const taken = new Set<number>();
  const columns: WireColumn[] = [];
  for (const column of table.columns) {
    const wire = wireColumn(column, map, message, run);
    if (wire === undefined) return undefined;
    if ("number" in wire) {
      if (taken.has(wire.number)) return undefined;
      taken.add(wire.number);
    }
    columns.push(wire);
  }
  // unknown fields go into `extra`, which is made from JSON
  return message.fields.every(({ number }) => taken.has(number)) ? columns : undefined;
}

function wireColumn(column: Column, map: RowMap, message: DescMessage, run: RunRef): WireColumn | undefined {
  const source = map.columns[column.name];
  switch (source?.kind) {
    case "run":
      return { text: inside(run.runId) };
    case "instance":
      return { text: inside(run.instanceId) };
    case "derived":
      return { text: "" };
    case "absent":
      return { text: emptyText(column) };
    case "constant":
      // only the code for doubles knows their spelling
      return column.kind === "double" ? undefined : { text: inside(source.text) };
    case "field": {
      const { path, unit, words, optional } = source;
      const [name, ...deeper] = path;
      const field = message.fields.find((one) => one.name === name);
      if (field === undefined || deeper.length > 0) return undefined;
      const texts = wordTexts(column, field, words);
      if (texts !== undefined)
        return { number: field.number, words: texts, isBool: field.enum === undefined };
      if (words !== undefined || unit === "rfc3339") return undefined;
      if (unit !== undefined && unit !== "ns") {
        const isCount = field.fieldKind === "scalar" && field.presence === implicitPresence;
        return isCount && field.scalar === ScalarType.INT64
          ? { number: field.number, zeros: zerosOf[unit] }
          : undefined;
      }
      if (isOwnType(column, field, optional === true)) return { number: field.number };
      const isDouble = field.fieldKind === "scalar" && field.scalar === ScalarType.DOUBLE;
      return isDouble &&
        column.kind === "exact" &&
        map.numbers === "exact" &&
        field.presence === implicitPresence
        ? { number: field.number, isDouble }
        : undefined;
    }
    default:
      return undefined;
  }
}

const zerosOf = { us: 3, ms: 6, s: 9 } as const;

/** The inside of a JSON string for each number of an enum or bool; undefined for other fields. */
function wordTexts(
  { kind }: Column,
  field: DescField,
  words: Extract<ColumnSource, { readonly kind: "field" }>["words"],
): ReadonlyMap<number, string> | undefined {
  if (kind !== "string" || field.presence !== implicitPresence) return undefined;
  const textOf = (wire: string | boolean) => words?.find((word) => word.wire === wire)?.column;
  const texts = new Map<number, string>();
  const add = (number: number, text: string | undefined) => {
    if (text !== undefined && !texts.has(number)) texts.set(number, inside(text));
  };
  if (field.fieldKind === "enum") {
    const named = new Map<number, string>();
    // the first of several names for one number
    for (const { number, name } of field.enum.values) if (!named.has(number)) named.set(number, name);
    for (const [number, name] of named) add(number, words === undefined ? name : textOf(name));
    return texts;
  }
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.BOOL || words === undefined)
    return undefined;
  add(1, textOf(true));
  add(0, textOf(false));
  return texts;
}

/** Whether the wire has exactly what the column takes; a missing value must be the column's empty value. */
function isOwnType({ kind }: Column, field: DescField, optional: boolean): boolean {
  if (field.fieldKind !== "scalar") return false;
  const hasPresence = field.presence !== implicitPresence;
  if (hasPresence && (!optional || kind === "double")) return false;
  return field.scalar === ownTypes[kind];
}

/** FeatureSet_FieldPresence.IMPLICIT of descriptor.proto. */
const implicitPresence = 2;

const ownTypes: Readonly<Record<Column["kind"], ScalarType>> = {
  uint64: ScalarType.UINT64,
  int64: ScalarType.INT64,
  uint32: ScalarType.UINT32,
  timestamp: ScalarType.INT64,
  exact: ScalarType.STRING,
  double: ScalarType.DOUBLE,
  string: ScalarType.STRING,
};

function emptyText({ kind }: Column): string {
  if (kind === "string" || kind === "exact") return "";
  return kind === "double" ? '"NaN"' : "0";
}

/** Text as it stands inside a JSON string. */
function inside(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
