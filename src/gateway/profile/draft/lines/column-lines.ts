import type { Column, Table, TableName } from "../../../../model/profile/table.ts";
import type { RunRef } from "../../../../model/source.ts";
import { likeliest, plainName } from "../../check/column-look.ts";
import { type JsonNode, type JsonObject, leavesOf } from "../../check/json-node.ts";
import { pathText, shortText } from "../../check/row-page.ts";
import { scalarText } from "../../check/sample.ts";
import { type DraftLine, pathScalar, scalar, someOf, unsure } from "../draft-line.ts";
import { fieldWords } from "../seen/guessed-names.ts";
import { isForeignWord, isNoWord, likelyWord } from "../seen/guessed-words.ts";
import { isTimeNode, timeUnitText } from "../time-unit.ts";

/** What a gateway's descriptors say about a field. */
export interface AboutField {
  /** Whether it is a Timestamp, which has its own unit. */
  readonly isTimestamp: boolean;
  /** Whether rows may lack it. */
  readonly mayLack: boolean;
  /** All values of an enum. */
  readonly values: readonly string[] | undefined;
}

/** A field of the rows with the values seen, if any. */
interface Field {
  readonly path: readonly string[];
  readonly name: string;
  readonly nodes: JsonNode[];
}

interface Guess {
  readonly field: Field;
  readonly why: string;
}

/** Rows of a table, and whatever else is known about their fields. */
export interface SampleRows {
  readonly rows: readonly JsonObject[];
  readonly run: RunRef;
  /** Fields in the gateway's descriptors, in addition to those seen. */
  readonly known?: readonly (readonly string[])[];
  readonly about?: (field: readonly string[]) => AboutField | undefined;
}

/** Where a table's columns come from, each guess with its reason; and `numbers`, if it matters. */
export function columnLines(
  table: Table,
  { rows, run, known = [], about = () => undefined }: SampleRows,
): { readonly numbers: DraftLine | undefined; readonly columns: readonly DraftLine[] } {
  const fields = fieldsOf(rows, known);
  const guesses = guessAll(table.columns, fields, run);
  const taken = new Set([...guesses.values()].map(({ field }) => field));
  const free = fields.filter((field) => !taken.has(field)).map(({ path }) => pathText(path));
  const time = guesses.get("ts_event")?.field;
  let bare: string | undefined;
  const columns = table.columns.map((column): DraftLine => {
    const guess = guesses.get(column.name);
    if (guess === undefined) {
      const only = column.name === "ts_init" ? time : undefined;
      if (only === undefined) return missing(column, free, fields.length > 0);
      return valueLine(
        table.name,
        column,
        { field: only, why: otherTimes(fields, only) },
        rows,
        about(only.path),
      );
    }
    const number = guess.field.nodes.find(({ kind }) => kind === "number");
    if (column.kind === "exact" && number !== undefined)
      bare ??= `${pathText(guess.field.path)} is ${shortText(number.text)}`;
    return valueLine(table.name, column, guess, rows, about(guess.field.path));
  });
  const numbers =
    bare === undefined
      ? undefined
      : {
          key: "numbers",
          value: unsure("exact"),
          why: `${bare}, without quotes: exact if the gateway writes decimals rather than floats`,
        };
  return { numbers, columns };
}

function fieldsOf(rows: readonly JsonObject[], known: readonly (readonly string[])[]): Field[] {
  const fields = new Map<string, Field>();
  const add = (path: readonly string[]): Field => {
    const id = path.join("\0");
    const field = fields.get(id) ?? { path, name: nameOf(path), nodes: [] };
    fields.set(id, field);
    return field;
  };
  for (const row of rows) for (const [path, node] of leavesOf(row)) add(path).nodes.push(node);
  for (const path of known) add(path);
  return [...fields.values()].filter(({ nodes }) =>
    nodes.every(({ kind }) => kind !== "array" && kind !== "object"),
  );
}

/** The name of a value; for a message around a single value, the message's name, which says more. */
function nameOf(path: readonly string[]): string {
  const last = path.at(-1)!;
  return last === "value" && path.length > 1 ? path.at(-2)! : last;
}

/** The surest guesses first, across all columns, so that none takes a field that clearly belongs to another. */
function guessAll(
  columns: readonly Column[],
  fields: readonly Field[],
  run: RunRef,
): ReadonlyMap<string, Guess> {
  const guesses = new Map<string, Guess>();
  const free = new Set(fields);
  for (const guess of [byValue, byOwnName, byUsualName, byNearName, byTime]) {
    for (const column of columns) {
      if (guesses.has(column.name)) continue;
      const found = guess(
        column,
        [...free].filter((field) => fits(column, field)),
        run,
      );
      if (found === undefined) continue;
      guesses.set(column.name, found);
      free.delete(found.field);
    }
  }
  return guesses;
}

type Guesser = (column: Column, free: readonly Field[], run: RunRef) => Guess | undefined;

const byValue: Guesser = ({ name }, free, { instanceId, runId }) => {
  const id = name === "run_id" ? runId : name === "instance_id" ? instanceId : undefined;
  const field =
    id === undefined
      ? undefined
      : free.find(({ nodes }) => nodes.length > 0 && nodes.every((node) => scalarText(node) === id));
  return field && { field, why: "it is the id that was requested" };
};

const byOwnName: Guesser = ({ name }, free) => {
  const field = free.find((one) => plainName(one.name) === plainName(name));
  return field && { field, why: "by its name" };
};

const byUsualName: Guesser = ({ name }, free) => {
  if (isCountOfNs(name)) return undefined;
  for (const usual of fieldWords[name] ?? []) {
    const field = free.find((one) => plainName(one.name) === plainName(usual));
    if (field !== undefined) return { field, why: `${field.name} often means ${name}` };
  }
  return undefined;
};

const byNearName: Guesser = ({ name }, free) => {
  // ids and counts of other things have misleadingly similar names
  if (["seq", "run_id", "instance_id"].includes(name) || isCountOfNs(name)) return undefined;
  const near = likeliest(
    name,
    free.map((one) => one.name),
  );
  const field = free.find((one) => one.name === near);
  return field && { field, why: "the most similar name" };
};

const byTime: Guesser = ({ name }, free) => {
  if (name !== "ts_event") return undefined;
  const field = free.find(({ nodes }) => nodes.length > 0 && nodes.every(isTimeNode));
  return field && { field, why: "the first field that is a time" };
};

/** Whether a column is a duration, whose unit only the name shows. */
function isCountOfNs(name: string): boolean {
  return name.endsWith("_ns");
}

/** Columns with few words, which may also come as numbers, true or false. */
const isWord: ReadonlySet<string> = new Set([
  "side",
  "liquidity",
  "kind",
  "status",
  "type",
  "time_in_force",
  "severity",
]);

/** Whether a field's values fit a column. */
function fits({ kind, name }: Column, { nodes }: Field): boolean {
  const values = nodes.filter((node) => node.kind !== "null" && scalarText(node) !== "");
  switch (kind) {
    case "timestamp":
      return values.every(isTimeNode);
    case "exact":
    case "double":
      return values.every((node) =>
        /^(?:-?[\d.]+(?:e[-+]?\d+)?|-?inf(?:inity)?|nan)$/i.test(scalarText(node) ?? ""),
      );
    case "string":
      return isWord.has(name) || values.every((node) => node.kind === "string");
    default:
      return values.every((node) => /^\d+$/.test(scalarText(node) ?? ""));
  }
}

function missing({ name }: Column, free: readonly string[], isSeen: boolean): DraftLine {
  if (name === "run_id") return { key: name, value: "run", why: "no field has the run's id" };
  if (name === "instance_id") return { key: name, value: "instance", why: "no field has the instance's id" };
  if (name === "seq") return { key: name, value: "derived", why: "no field is called seq" };
  if (isSeen && free.length === 0 && name !== "ts_event")
    return { key: name, value: "absent", why: "every field already has a column" };
  const others = free.length === 0 ? "" : ` (${someOf(free, 60)})`;
  const ways =
    name === "ts_event"
      ? "name one"
      : "name one, write absent, or write { value: … } if it is always the same";
  return { key: name, value: unsure(undefined), why: `no field matches: ${ways}${others}` };
}

/** Fields with these names are written as a map, because the bare word means something else. */
const sources: ReadonlySet<string> = new Set(["run", "instance", "absent", "derived"]);

function valueLine(
  table: TableName,
  column: Column,
  { field, why }: Guess,
  rows: readonly JsonObject[],
  said: AboutField | undefined,
): DraftLine {
  const { nodes } = field;
  const node = nodes.find(({ kind, text }) => kind !== "null" && text !== '""') ?? nodes[0];
  const isNull = nodes.some(({ kind }) => kind === "null");
  const lacks =
    nodes.length < rows.length || said?.mayLack === true || (isNull && !mayBeNull.has(column.kind));
  const optional = lacks && !["seq", "ts_event", "run_id", "instance_id"].includes(column.name);
  const more = optional ? ", optional: true" : "";
  const path = pathScalar(field.path);
  const from = `{ from: ${path}`;
  const line = (value: string, reason: string): DraftLine => ({
    key: column.name,
    value,
    why: `${reason}; ${why}`,
  });
  const plainly = optional ? `${from}${more} }` : sources.has(path) ? `${from} }` : path;
  if (column.kind === "timestamp") {
    if (said?.isTimestamp === true) return line(plainly, "a Timestamp, which has its own unit");
    const { unit, reason } = timeUnitText(nodes, field.name);
    return line(`${from}, unit: ${unit}${more} }`, reason);
  }
  const values = [
    ...new Map(
      nodes.filter(({ kind, text }) => kind !== "null" && text !== '""').map((one) => [one.text, one]),
    ).values(),
  ];
  const isOdd =
    column.kind === "string" &&
    (said?.values !== undefined ||
      values.some((one) => one.kind !== "string" || isForeignWord(table, column.name, one.value)));
  if (isOdd) {
    const { words, reason } = wordsText(table, column.name, field.name, values, said?.values);
    return line(`${from}, words: ${words}${more} }`, reason);
  }
  if (optional) return line(plainly, "rows may lack it");
  return line(
    plainly,
    node === undefined
      ? "no row was seen"
      : node.kind === "null"
        ? "null in every row seen"
        : `such as ${shortText(node.text)}`,
  );
}

/** Kinds whose `null` is the empty value. */
const mayBeNull: ReadonlySet<string> = new Set(["string", "exact", "double"]);

/** A field with more different values than this does not hold words. */
const mostWords = 8;

function wordsText(
  table: TableName,
  column: string,
  field: string,
  values: readonly JsonNode[],
  enumerated: readonly string[] | undefined,
): { readonly words: string; readonly reason: string } {
  const keys =
    enumerated
      ?.filter((text) => !isNoWord(text))
      .map((text): readonly [string, string] => [scalar(text), text]) ??
    values.map((node): readonly [string, string] => {
      const text = scalarText(node) ?? "";
      return [node.kind === "string" ? scalar(text) : text.replace(/\.0+$/, ""), text];
    });
  const seen = someOf(enumerated ?? values.map(({ text }) => text));
  if (keys.length === 0 || keys.length > mostWords)
    return { words: unsure(undefined), reason: `values are ${seen}: say what each means` };
  const used = new Set<string>();
  const pairs = keys.map(([key, text]) => {
    const word = likelyWord(table, column, text, field);
    const isNew = word !== undefined && !used.has(word);
    if (isNew) used.add(word);
    return `${key}: ${unsure(isNew ? word : undefined)}`;
  });
  return {
    words: `{ ${pairs.join(", ")} }`,
    reason: `${enumerated === undefined ? "values seen are" : "values are"} ${seen}: say what each means`,
  };
}

/** Why ts_init comes from a time whose name does not say that it is when the event was learned of. */
function otherTimes(fields: readonly Field[], time: Field): string {
  const others = fields.filter(
    (field) => field !== time && field.nodes.length > 0 && field.nodes.every(isTimeNode),
  );
  return others.length === 0
    ? "no other field is a time"
    : `other times, in case one of them is when it was learned of: ${others.map(({ path }) => pathText(path)).join(", ")}`;
}
