import { type ColumnSource, type RowMap, type TimeUnit, timeUnits } from "../../../model/profile/row-map.ts";
import type { Column } from "../../../model/profile/table.ts";
import { nearestName } from "../../../model/text/nearest-name.ts";
import { countText } from "../../../model/text/plural.ts";
import { formatTime } from "../../../model/time.ts";
import { instantIn } from "../../rest/field-values.ts";
import { fieldText } from "../rows/careful-row.ts";
import { type ForeignValue, NotARow } from "../rows/foreign-json.ts";
import type { FieldColumn, RowPlan } from "../rows/row-plan.ts";
import { type JsonNode, type JsonObject, leavesOf, nodeAt } from "./json-node.ts";
import type { ColumnCheck, Finding, UnusedField } from "./profile-check.ts";
import { pathText, shortText } from "./row-page.ts";
import { isLikelyTime, likelyUnit } from "./times.ts";

type FieldSource = Extract<ColumnSource, { readonly kind: "field" }>;

/** What sample rows show about a table's map. */
export interface MapLook {
  readonly columns: readonly ColumnCheck[];
  readonly unused: readonly UnusedField[];
  readonly findings: Finding[];
}

/** Checks a table's columns against rows as the gateway sent them. */
export function lookAtRows(plan: RowPlan, map: RowMap, rows: readonly JsonObject[], key: string): MapLook {
  const columns = plan.table.columns;
  const leaves = leafValues(rows);
  const unused = unusedFields(map, leaves, columns);
  const findings: Finding[] = [];
  const looks = plan.columns.map((planned): ColumnCheck => {
    const { column } = planned;
    const source = map.columns[column.name] ?? { kind: "field", path: [column.name] };
    const at = `${key}.columns.${column.name}`;
    if (planned.kind === "fixed" || source.kind !== "field") {
      if (source.kind === "absent" || source.kind === "constant") {
        findings.push(...unusedFor(column.name, source, unused, at));
      }
      return {
        column: column.name,
        from: sourceText(source),
        raw: null,
        canonical: planned.kind === "fixed" && source.kind !== "derived" ? plainText(planned.text) : null,
        empty: source.kind === "absent",
      };
    }
    const nodes = rows.map((row) => nodeAt(row, source.path));
    findings.push(...faultsOf(planned, source, map, nodes, leaves, unused, at));
    const filled = nodes.find((node) => node !== undefined && !isEmpty(node, column));
    return {
      column: column.name,
      from: sourceText(source),
      raw: filled === undefined ? null : shortText(filled.text),
      canonical: filled === undefined ? null : (canonicalText(planned, filled) ?? null),
      empty: filled === undefined,
    };
  });
  return { columns: looks, unused, findings };
}

/** A value as archived; undefined if it does not fit. */
function canonicalText(planned: FieldColumn, node: JsonNode): string | undefined {
  try {
    return plainText(fieldText(planned, foreignOf(node)));
  } catch (thrown) {
    if (thrown instanceof NotARow) return undefined;
    throw thrown;
  }
}

/** Why a value does not fit; undefined if it does. */
function refusal(planned: FieldColumn, node: JsonNode): string | undefined {
  try {
    fieldText(planned, foreignOf(node));
    return undefined;
  } catch (thrown) {
    if (thrown instanceof NotARow) return thrown.message;
    throw thrown;
  }
}

function foreignOf(node: JsonNode): ForeignValue {
  switch (node.kind) {
    case "string":
      return { kind: "string", text: node.value };
    case "number":
      return { kind: /\d/.test(node.text) ? "number" : "word", text: node.text };
    case "boolean":
    case "null":
      return { kind: "word", text: node.text };
    case "array":
      return { kind: "array", items: [] };
    case "object":
      return { kind: "object", members: [] };
  }
}

function plainText(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** Where a column comes from, for people. */
export function sourceText(source: ColumnSource): string {
  switch (source.kind) {
    case "field": {
      const unit = source.unit === undefined || source.unit === "ns" ? "" : `, ${source.unit}`;
      return `${pathText(source.path)}${unit}${source.words === undefined ? "" : ", with words"}`;
    }
    case "constant":
      return `always ${JSON.stringify(source.text)}`;
    case "run":
      return "the run's id";
    case "instance":
      return "the instance's id";
    case "absent":
      return "absent";
    case "derived":
      return "numbered by runvault";
  }
}

function isEmpty(node: JsonNode, { kind }: Column): boolean {
  if (node.kind === "null" || (node.kind === "string" && node.value === "")) return true;
  return kind !== "string" && kind !== "exact" && kind !== "double" && /^"?0"?$/.test(node.text);
}

/** The first value of each field, by its path. */
type Leaves = ReadonlyMap<string, { readonly path: readonly string[]; readonly node: JsonNode }>;

function leafValues(rows: readonly JsonObject[]): Leaves {
  const leaves = new Map<string, { path: readonly string[]; node: JsonNode }>();
  for (const row of rows) {
    for (const [path, node] of leavesOf(row)) {
      const name = pathText(path);
      const known = leaves.get(name);
      if (known === undefined || known.node.kind === "null") leaves.set(name, { path, node });
    }
  }
  return leaves;
}

function unusedFields(map: RowMap, leaves: Leaves, columns: readonly Column[]): UnusedField[] {
  const taken = Object.values(map.columns).flatMap((source) =>
    source.kind === "field" ? [source.path] : [],
  );
  const known = [...taken, ...map.dropped];
  const free = columns
    .filter(({ name }) => {
      const source = map.columns[name];
      return source?.kind !== "field" || !leaves.has(pathText(source.path));
    })
    .map(({ name }) => name);
  const unused: UnusedField[] = [];
  for (const [field, { path, node }] of leaves) {
    if (known.some((one) => one.every((name, at) => path[at] === name))) continue;
    const raw = shortText(node.text);
    unused.push({ field, raw, nearest: likeliest(path.at(-1)!, free) ?? null });
  }
  return unused;
}

/**
 * The name that was probably meant: equal but for case and punctuation, similar, or with a word in common.
 */
export function likeliest(name: string, names: readonly string[]): string | undefined {
  const plain = plainName(name);
  const same = names.find((one) => plainName(one) === plain);
  if (same !== undefined) return same;
  const near = nearestName(name, names);
  if (near !== null) return near;
  const words = wordsIn(name);
  return names.find((one) => wordsIn(one).some((word) => word.length >= 3 && words.includes(word)));
}

/** A name in lower case, without separators. */
export function plainName(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, "").toLowerCase();
}

function wordsIn(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

/** Reports a column that is absent or constant in the profile although a field has its name. */
function unusedFor(
  column: string,
  source: ColumnSource,
  unused: readonly UnusedField[],
  key: string,
): Finding[] {
  const field = unused.find((one) => plainName(one.field.split(".").at(-1)!) === plainName(column));
  if (field === undefined) return [];
  return [
    {
      kind: "unused_field",
      key,
      message: `the column is ${sourceText(source)} in the profile, but rows have a field ${field.field} (${field.raw})`,
      hint: `Use it: \`${column}: ${field.field}\`. If it means something else, drop it: \`dropped: [{ from: ${field.field}, lossy: true }]\`.`,
    },
  ];
}

function faultsOf(
  planned: FieldColumn,
  source: FieldSource,
  map: RowMap,
  nodes: readonly (JsonNode | undefined)[],
  leaves: Leaves,
  unused: readonly UnusedField[],
  key: string,
): Finding[] {
  const { column } = planned;
  const missing = nodes.filter((node) => node === undefined).length;
  const findings: Finding[] = [];
  const free = unused.map(({ field }) => field);
  const meant =
    likeliest(source.path.at(-1)!, free) ?? free.find((field) => plainName(field) === plainName(column.name));
  if (missing > 0 && source.optional !== true) {
    const group = leaves.size > 0 && missing === nodes.length ? meant : undefined;
    findings.push({
      kind: "missing_field",
      key,
      message: `${missing === nodes.length ? "no row has" : `${missing} of ${countText(nodes.length, "row")} lack`} the field ${pathText(source.path)}`,
      hint:
        group !== undefined
          ? `Did you mean ${group}?`
          : missing === nodes.length
            ? `${free.length === 0 ? "Columns use all fields of the rows" : `Unused fields: ${shortText(free.join(", "), 300)}`}. If the gateway does not have this column, write \`${column.name}: absent\`.`
            : "If the gateway omits empty values, write `optional: true`.",
    });
  } else if (missing === nodes.length && meant !== undefined) {
    findings.push({
      kind: "missing_field",
      key,
      message: `no row has the optional field ${pathText(source.path)}, and no column takes ${meant}`,
      hint: `Did you mean ${meant}? If not, check a run that has ${pathText(source.path)}.`,
    });
  }
  const present = nodes.filter((node) => node !== undefined);
  const said = new Set<string>();
  for (const node of present) {
    const fault = faultOf(planned, source, map, node) ?? foreignWord(column, source, node, key);
    if (fault === undefined || said.has(`${fault.kind} ${fault.about}`)) continue;
    said.add(`${fault.kind} ${fault.about}`);
    // three examples are enough
    if (said.size > 3) break;
    findings.push({ kind: fault.kind, key, message: fault.message, hint: fault.hint });
  }
  return findings;
}

/** Columns whose words affect computed figures, and these words. */
const ownWords: Readonly<Record<string, readonly string[]>> = {
  side: ["BUY", "SELL"],
  "order_book.side": ["BID", "ASK"],
  liquidity: ["MAKER", "TAKER", ""],
};

const orderSteps = ["SUBMITTED", "ACCEPTED", "REJECTED", "PARTIALLY_FILLED", "FILLED", "CANCELED", "EXPIRED"];

/** Columns that may have other words too, but not these in another spelling. */
const spellings: Readonly<Record<string, readonly string[]>> = {
  "orders.kind": [...orderSteps, "CANCEL_REQUESTED"],
  "orders.status": [...orderSteps, "PENDING_CANCEL"],
  "orders.type": ["MARKET", "LIMIT", "STOP_MARKET", "STOP_LIMIT"],
  "orders.time_in_force": ["GTC", "IOC", "FOK", "DAY"],
  "events.severity": ["DEBUG", "INFO", "WARNING", "ERROR"],
};

/** The word that a value is another spelling of: `limit`, `Cancelled`, `stop-limit`. */
function otherSpelling(words: readonly string[], value: string): string | undefined {
  const plain = (text: string) => text.toUpperCase().replaceAll(/[-_ ]/g, "").replace("CANCELL", "CANCEL");
  return words.includes(value) ? undefined : words.find((word) => plain(word) === plain(value));
}

/** Reports a value that fits the column but that no reader of the archive would understand. */
function foreignWord(
  { name }: Column,
  { path, words }: FieldSource,
  node: JsonNode,
  key: string,
): ValueFault | undefined {
  if (node.kind !== "string") return undefined;
  const becomes = words?.find(({ wire }) => wire === node.value)?.column ?? node.value;
  const table = /(?:^|\.)tables\.(\w+)\./.exec(key)?.[1];
  const meant = otherSpelling(spellings[`${table}.${name}`] ?? [], becomes);
  if (meant !== undefined) {
    const shown = shortText(node.text);
    return {
      kind: "unknown_word",
      message: `${pathText(path)} has the value ${shown}, which runvault calls ${meant}`,
      hint: `Write \`words: { ${shown}: ${meant} }\`.`,
      about: becomes,
    };
  }
  const known = ownWords[table === "order_book" ? `order_book.${name}` : name];
  if (known === undefined) return undefined;
  if (known.includes(becomes)) return undefined;
  const own = known.filter((word) => word !== "").join(" or ");
  const shown = shortText(node.text);
  return {
    kind: "unknown_word",
    message: `${pathText(path)} has the value ${shown}${becomes === node.value ? "" : `, which \`words\` makes ${shortText(JSON.stringify(becomes))}`}, but ${name} must be ${own}`,
    hint: `Write \`words: { ${shown}: ${known[0]} }\` or \`words: { ${shown}: ${known[1]} }\`.`,
    about: becomes,
  };
}

interface ValueFault extends Pick<Finding, "kind" | "message" | "hint"> {
  /** Faults about the same thing are reported once. */
  readonly about: string;
}

/** Why a value does not fit its column; undefined if it does. */
function faultOf(
  planned: FieldColumn,
  source: FieldSource,
  map: RowMap,
  node: JsonNode,
): ValueFault | undefined {
  const { column } = planned;
  const refused = refusal(planned, node);
  // a readable time may still be impossible for a run
  if (refused === undefined && column.kind !== "timestamp") return undefined;
  const fault = explained(column, source, map, node);
  if (fault !== undefined || refused === undefined) return fault;
  return {
    kind: "wrong_value",
    message: refused,
    hint: "Correct the profile's entry for the column.",
    about: "",
  };
}

/** The same in terms of the profile; undefined if there is nothing to add. */
function explained(column: Column, source: FieldSource, map: RowMap, node: JsonNode): ValueFault | undefined {
  const field = pathText(source.path);
  const shown = shortText(node.text);
  const wrong = (kind: Finding["kind"], message: string, hint: string, about = ""): ValueFault => ({
    kind,
    message,
    hint,
    about,
  });
  if (node.kind === "object" || node.kind === "array") {
    const [inside] = node.kind === "object" ? [...leavesOf(node)] : [];
    return wrong(
      "wrong_value",
      `${field} holds ${node.kind === "object" ? "an object" : "an array"}: ${shown}`,
      inside === undefined
        ? "A column needs a single value."
        : `Name the field in it, such as ${pathText([...source.path, ...inside[0]])}.`,
    );
  }
  if (node.kind === "null") {
    const mayBe = column.kind === "string" || column.kind === "exact" || column.kind === "double";
    if (mayBe || source.optional === true) return undefined;
    return wrong(
      "null_value",
      `${field} is null, but a column of kind ${column.kind} cannot be empty`,
      column.name === "ts_event" || column.name === "seq"
        ? "Use another field: every row needs a value here."
        : "If null means 0, write `optional: true`.",
    );
  }
  if (source.words !== undefined) {
    const isKnown = source.words.some(({ wire }) =>
      node.kind === "string" ? wire === node.value : String(wire) === node.text && typeof wire !== "string",
    );
    if (isKnown || (node.kind === "string" && node.value === "" && source.optional === true))
      return undefined;
    const known = source.words.map(({ wire }) => (isBareText(wire) ? JSON.stringify(wire) : String(wire)));
    const isQuoted = source.words.some(({ wire }) => typeof wire === "string" && wire === node.text);
    return wrong(
      "unknown_word",
      `${field} has the value ${shown}, which is not in \`words\` (${known.join(", ")})`,
      isQuoted
        ? `Write ${shown} without quotes in \`words\`: the gateway does not send it as text.`
        : `Say what it means: \`words: { ${shown}: … }\`.`,
      shown,
    );
  }
  switch (column.kind) {
    case "string":
      if (node.kind === "string") return undefined;
      return wrong(
        "wrong_value",
        `${field} is ${node.kind === "boolean" ? "true or false" : "a number"} (${shown}), but the column holds text`,
        `Say what each value means: \`words: { ${shown}: … }\`; or use another field.`,
      );
    case "exact":
      return exactFault(field, map, node, shown, wrong);
    case "double":
      if (isDouble(node)) return undefined;
      return wrong("wrong_value", `${field} is not a number: ${shown}`, "Use another field.");
    case "timestamp":
      return timeFault(field, source.unit ?? "ns", node, shown, wrong);
    default: {
      const text = node.kind === "string" ? node.value : node.text;
      const whole = node.kind === "boolean" ? undefined : instantIn(text, "ns");
      if (whole !== undefined && !/^-?\d*\.\d*[1-9]/.test(text)) return undefined;
      return wrong("wrong_value", `${field} is not a whole number: ${shown}`, "Use another field.");
    }
  }
}

type Wrong = (kind: Finding["kind"], message: string, hint: string, about?: string) => ValueFault;

const decimal = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

function exactFault(
  field: string,
  map: RowMap,
  node: JsonNode,
  shown: string,
  wrong: Wrong,
): ValueFault | undefined {
  if (node.kind === "string") {
    if (node.value === "" || decimal.test(node.value)) return undefined;
    return wrong("wrong_value", `${field} is not a number: ${shown}`, "Use another field.");
  }
  if (node.kind === "number" && /\d/.test(node.text)) {
    if (map.numbers === "exact") return undefined;
    return wrong(
      "bare_number",
      `${field} is a bare number (${shown}), not text`,
      "If the gateway writes such numbers exactly, write `numbers: exact`. Rounding by the gateway cannot be detected.",
    );
  }
  return wrong("wrong_value", `${field} is not an exact number: ${shown}`, "Use another field.");
}

function isDouble(node: JsonNode): boolean {
  if (node.kind === "number") return true;
  return node.kind === "string" && /^(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|NaN|-?Infinity|)$/.test(node.value);
}

function timeFault(
  field: string,
  unit: TimeUnit,
  node: JsonNode,
  shown: string,
  wrong: Wrong,
): ValueFault | undefined {
  const text = node.kind === "string" ? node.value : node.text;
  const ns = instantIn(text, unit);
  if (text === "" || (ns === 0n && unit !== "rfc3339") || (ns !== undefined && isLikelyTime(ns)))
    return undefined;
  const likely = likelyUnit(text);
  const inUnit =
    ns === undefined
      ? `not a time in ${unitText(unit)}`
      : `in ${unitText(unit)}, ${yearText(ns)}, not between 1990 and 2100`;
  return wrong(
    "time_unit",
    `${field} is ${shown}: ${inUnit}`,
    likely === undefined
      ? `It is not a time in any unit (${timeUnits.join(", ")}): use another field.`
      : `In ${unitText(likely)} it is ${formatTime(instantIn(text, likely)!).slice(0, 19)}Z: write \`unit: ${likely}\`.`,
  );
}

export function unitText(unit: TimeUnit): string {
  return unit === "rfc3339" ? "RFC 3339" : unit;
}

function yearText(ns: bigint): string {
  const year = 1970 + Number(ns / 31_556_952_000_000_000n);
  return `the year ${year}`;
}

/** Whether a word would be read as something else without its quotes. */
function isBareText(wire: unknown): wire is string {
  return typeof wire === "string" && /^(?:true|false|-?\d+)$/.test(wire);
}
