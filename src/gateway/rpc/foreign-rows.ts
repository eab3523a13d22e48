import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { RunvaultError } from "../../model/error.ts";
import type { ColumnSource, RowMap } from "../../model/profile/row-map.ts";
import type { Column, Table } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { planMessage } from "../../row/wire/json-plan.ts";
import { JsonTranscoder } from "../../row/wire/json-transcoder.ts";
import { RowTranscoder, type WireColumn } from "../../row/wire/row-transcoder.ts";
import { RowNormaliser } from "../profile/rows/row-normaliser.ts";
import type { PageTranscoder } from "./page-reader.ts";

/** How the rows of one table and run become canonical lines: straight from the wire, or as JSON that is then made so. */
export interface ForeignRows {
  readonly transcoder: PageTranscoder;
  /** Undefined where what the transcoder makes is canonical. */
  readonly normaliser: RowNormaliser | undefined;
}

/** The shortest way from rows of this message to the table's lines. */
export function foreignRows(
  table: Table,
  map: RowMap | undefined,
  message: DescMessage,
  run: RunRef,
  onUnknownField: (path: readonly string[]) => void,
): ForeignRows {
  const whole = map ?? ownNames(table);
  const columns = flatColumns(table, whole, message, run);
  if (columns !== undefined) return { transcoder: new RowTranscoder(table, columns), normaliser: undefined };
  const read = planMessage(message);
  // the profile was not loaded with such a message
  if ("unreadable" in read) throw new RunvaultError("internal", `${message.typeName} cannot be read`);
  return {
    transcoder: new JsonTranscoder(read.plan),
    normaliser: new RowNormaliser(table, whole, run, { onUnknownField }),
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
 * Where each column comes from, where renames and fixed values alone make the rows canonical: every field of the message
 * is one column, of its own type. Undefined where anything else is to be done.
 */
export function flatColumns(
  table: Table,
  map: RowMap,
  message: DescMessage,
  run: RunRef,
): readonly WireColumn[] | undefined {
  if (map.fields !== "keep" || map.dropped.length > 0) return undefined;
  const taken = new Set<number>();
  const columns: WireColumn[] = [];
  for (const column of table.columns) {
    const wire = wireColumn(column, map.columns[column.name], message, run);
    if (wire === undefined) return undefined;
    if ("number" in wire) {
      if (taken.has(wire.number)) return undefined;
      taken.add(wire.number);
    }
    columns.push(wire);
  }
  // what no column takes goes into `extra`, which is made of JSON
  return message.fields.every(({ number }) => taken.has(number)) ? columns : undefined;
}

function wireColumn(
  column: Column,
  source: ColumnSource | undefined,
  message: DescMessage,
  run: RunRef,
): WireColumn | undefined {
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
      // a double's spelling is for who makes doubles
      return column.kind === "double" ? undefined : { text: inside(source.text) };
    case "field": {
      const { path, unit, words, optional } = source;
      const [name, ...deeper] = path;
      const field = message.fields.find((one) => one.name === name);
      if (field === undefined || deeper.length > 0 || words !== undefined) return undefined;
      if (unit !== undefined && unit !== "ns") return undefined;
      return isOwnType(column, field, optional === true) ? { number: field.number } : undefined;
    }
    default:
      return undefined;
  }
}

/** Whether the wire has just what the column takes; what is not on the wire has to be the column's empty value. */
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
