import type { Column, Table } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { likeliest } from "../check/column-look.ts";
import { type JsonNode, type JsonObject, leavesOf } from "../check/json-node.ts";
import { pathText, shortText } from "../check/row-page.ts";
import { scalarText } from "../check/sample.ts";
import { digitsAhead, likelyUnit } from "../check/times.ts";
import { fieldWords } from "./guessed-names.ts";

/** A text as YAML has it: in quotes where it could be read as anything else. */
export function scalar(text: string): string {
  return /^[A-Za-z_/][\w./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
}

/** What a gateway's descriptors say of a field. */
export interface AboutField {
  /** Whether it is a time of its own unit. */
  readonly isTimestamp: boolean;
  /** Whether a row may be without it. */
  readonly mayLack: boolean;
  /** All values of an enum. */
  readonly values: readonly string[] | undefined;
}

/** `numbers` and `columns` of a table, each guess with its reason. */
export function columnLines(
  table: Table,
  rows: readonly JsonObject[],
  run: RunRef,
  about: (field: string) => AboutField | undefined = () => undefined,
): string[] {
  const leaves = new Map<string, { readonly name: string; readonly nodes: JsonNode[] }>();
  for (const row of rows) {
    for (const [path, node] of leavesOf(row)) {
      const known = leaves.get(pathText(path));
      if (known === undefined) leaves.set(pathText(path), { name: nameOf(path), nodes: [node] });
      else known.nodes.push(node);
    }
  }
  const free = new Set(leaves.keys());
  let bare: string | undefined;
  const lines = table.columns.map((column) => {
    const guess = guessOf(column, [...free], run, leaves);
    if (guess === undefined) return `  ${column.name}: ${missingText(column)}`;
    free.delete(guess.field);
    const { nodes } = leaves.get(guess.field)!;
    const node = nodes.find(({ kind, text }) => kind !== "null" && text !== '""') ?? nodes[0]!;
    if (column.kind === "exact" && node.kind === "number")
      bare ??= `${guess.field} is ${shortText(node.text)}`;
    const said = about(guess.field);
    const lacks = nodes.length < rows.length || said?.mayLack === true;
    const optional = lacks && column.name !== "seq" && column.name !== "ts_event";
    return `  ${column.name}: ${valueText(column, guess.field, nodes, node, optional, said)}; ${guess.why}`;
  });
  const numbers =
    bare === undefined
      ? []
      : [`numbers: "?"  # ${bare}, bare: write exact if the gateway writes decimals, and not floats`];
  return [...numbers, "columns:", ...lines];
}

/** What a value is called: a message around a value alone says more than that it is one. */
function nameOf(path: readonly string[]): string {
  const last = path.at(-1)!;
  return last === "value" && path.length > 1 ? path.at(-2)! : last;
}

interface Guess {
  readonly field: string;
  readonly why: string;
}

function guessOf(
  column: Column,
  free: readonly string[],
  run: RunRef,
  leaves: ReadonlyMap<string, { readonly name: string; readonly nodes: readonly JsonNode[] }>,
): Guess | undefined {
  const id =
    column.name === "run_id" ? run.runId : column.name === "instance_id" ? run.instanceId : undefined;
  if (id !== undefined) {
    const field = free.find((one) => leaves.get(one)!.nodes.every((node) => scalarText(node) === id));
    return field === undefined ? undefined : { field, why: "it is the id that was asked for" };
  }
  if (column.name === "seq") {
    const field = free.find((one) => ["seq", "sequence"].includes(leaves.get(one)!.name.toLowerCase()));
    return field === undefined ? undefined : { field, why: "by its name" };
  }
  const names = new Map(free.map((field) => [leaves.get(field)!.name, field]));
  const own = [...names.keys()].find((name) => plain(name) === plain(column.name));
  if (own !== undefined) return { field: names.get(own)!, why: "by its name" };
  const usual = (fieldWords[column.name] ?? []).find((name) => names.has(name));
  if (usual !== undefined) return { field: names.get(usual)!, why: `${usual} often means ${column.name}` };
  const near = likeliest(column.name, [...names.keys()]);
  return near === undefined ? undefined : { field: names.get(near)!, why: "the nearest name" };
}

function plain(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, "").toLowerCase();
}

function missingText({ name, kind }: Column): string {
  if (name === "run_id") return "run  # no field has the run's id";
  if (name === "instance_id") return "instance  # no field has the instance's id";
  if (name === "seq") return "derived  # no field is called seq";
  return `{ from: "?", ${kind === "timestamp" ? 'unit: "?"' : 'words: "?"'} }  # no field looks like it: name one, or write absent`;
}

const knownWords: Readonly<Record<string, readonly string[]>> = {
  side: ["BUY", "SELL"],
  liquidity: ["MAKER", "TAKER"],
};

function valueText(
  column: Column,
  field: string,
  nodes: readonly JsonNode[],
  node: JsonNode,
  optional: boolean,
  said: AboutField | undefined,
): string {
  const from = `from: ${scalar(field)}`;
  const also = optional ? ", optional: true" : "";
  const shown = shortText(node.text);
  if (column.kind === "timestamp" && said?.isTimestamp === true) {
    return `${optional ? `{ ${from}${also} }` : scalar(field)}  # a Timestamp, which has its own unit`;
  }
  if (column.kind === "timestamp") return `{ ${from}, unit: "?"${also} }  # ${timeReason(node)}`;
  const isOdd =
    column.kind === "string" &&
    (node.kind !== "string" ||
      said?.values !== undefined ||
      (knownWords[column.name] !== undefined && !knownWords[column.name]!.includes(node.value)));
  if (isOdd) {
    const texts = said?.values?.map(scalar) ?? nodes.map(({ text }) => text);
    const seen = [...new Set(texts)].slice(0, 8).join(", ");
    return `{ ${from}, words: "?"${also} }  # values are ${shortText(seen, 80)}: say what each means`;
  }
  return optional
    ? `{ ${from}, optional: true }  # a row may be without it`
    : `${scalar(field)}  # such as ${shown}`;
}

/** Why a time is likely in some unit, for somebody to confirm. */
function timeReason(node: JsonNode): string {
  const text = scalarText(node) ?? "";
  const unit = likelyUnit(text);
  if (unit === undefined) return `${shortText(node.text)} is no time of these years in any unit`;
  if (unit === "rfc3339") return `${shortText(node.text)} looks like rfc3339: write it if so`;
  return `${shortText(node.text)} has ${digitsAhead(text)} digits, as ${unit} of these years have: look it up and write it`;
}
