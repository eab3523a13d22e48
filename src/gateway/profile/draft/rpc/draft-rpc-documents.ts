import type { DescField, DescMethodUnary } from "@bufbuild/protobuf";
import { type JsonNode, nodeAt } from "../../check/json-node.ts";
import { scalarText } from "../../check/sample.ts";
import { isTimestamp } from "../../rpc/message-path.ts";
import { scalar, unsure } from "../draft-line.ts";
import { listNamed, tableOfName } from "../seen/guessed-names.ts";
import { isNoWord, likelyStatus } from "../seen/guessed-words.ts";
import type { AskablePath } from "../seen/known-paths.ts";
import {
  fieldNamed,
  isCount,
  isText,
  isTime,
  listFields,
  type PlacedField,
  singleFields,
} from "./message-fields.ts";
import { dotted, requestNames, requestText } from "./request-names.ts";

/**
 * Documents that methods probably return, by names and shapes. Adds the methods to `used`; `counted` has the gateway's
 * names for the tables that it counts, as far as seen.
 */
export function rpcDocumentLines(
  methods: readonly DescMethodUnary[],
  used: Set<DescMethodUnary>,
  counted: readonly string[],
): string[] {
  const lines: string[] = [];
  for (const [document, linesOf] of drafts) {
    for (const method of methods) {
      const found = used.has(method) ? undefined : linesOf(method, counted);
      if (found === undefined) continue;
      used.add(method);
      lines.push(`  ${document}:`, ...found.map((line) => `    ${line}`));
      break;
    }
  }
  return lines.length === 0
    ? ['documents: "?"  # name the methods that list instances and runs, or `given: { INSTANCE: [RUN] }`']
    : ["documents:", ...lines];
}

/** Methods that may list instances, or an instance's runs, as paths to request: the method's name is the path. */
export function listMethods(methods: readonly DescMethodUnary[], what: "instances" | "runs"): AskablePath[] {
  return methods.flatMap((method): AskablePath[] => {
    const names = requestNames(method.input);
    if (listIn(method, what) === undefined || names.run !== undefined) return [];
    const path = `${method.parent.typeName}.${method.name}`;
    const instance = names.instance === undefined ? {} : { instance: dotted(names.instance) };
    return [{ path, names: instance, known: { path, parameters: [] } }];
  });
}

const drafts: readonly (readonly [
  string,
  (method: DescMethodUnary, counted: readonly string[]) => string[] | undefined,
])[] = [
  ["instances", instanceLines],
  ["runs", runLines],
  ["storage", storageLines],
  ["summary", summaryLines],
];

function instanceLines(method: DescMethodUnary): string[] | undefined {
  const list = listIn(method, "instances");
  if (list === undefined) return undefined;
  const { message } = list.field;
  const lines = [methodLine(method, `by the name of ${scalar(dotted(list.path))}`), listLine(list)];
  if (message === undefined) return lines;
  lines.push(
    pathLine("id", fieldNamed(singleFields(message), /^(?:id|name)$|_?id$/i, isText), "by its name"),
  );
  const runs = message.fields.find(
    ({ fieldKind, name, message: inner }) =>
      fieldKind === "list" && inner === undefined && /run|session|execution/i.test(name),
  );
  if (runs !== undefined) lines.push(`runs: ${scalar(runs.name)}  # by its name`);
  return lines;
}

function runLines(method: DescMethodUnary): string[] | undefined {
  const list = listIn(method, "runs");
  const message = list?.field.message;
  const names = requestNames(method.input);
  if (list === undefined || message === undefined) return undefined;
  const fields = singleFields(message);
  const started = fieldNamed(fields, /^(?:start|open|begin|began|creat)/i, isTime);
  const ended = fieldNamed(fields, /^(?:end|clos|finish|stop)/i, isTime);
  const status = fieldNamed(fields, /state|status/i, (field) => field.enum !== undefined || isText(field));
  const final = fieldNamed(fields, /final|sealed|complete|closed|done/i, isBool);
  const lines = [
    methodLine(method, `by the name of ${scalar(dotted(list.path))}`),
    names.instance === undefined
      ? 'parameters: { instance: "?" }  # no field of the request is named after an instance'
      : `parameters: ${requestText(names, ["instance"])}  # by its name`,
    listLine(list),
    pathLine(
      "id",
      fieldNamed(fields, /^(?:id|name)$|(?:run|session|execution)_?id$/i, isText),
      "by its name",
    ),
    ...optionalLines({ started, ended }),
    ...unitLines([started, ended]),
  ];
  if (status !== undefined) {
    lines.push(`status: ${scalar(dotted(status.path))}  # by its name`);
    const words = status.field.enum?.values
      .filter(({ name }) => !isNoWord(name))
      .map(({ name }) => `${scalar(name)}: ${unsure(likelyStatus(name))}`);
    lines.push(
      `words: ${words === undefined ? unsure(undefined) : `{ ${words.join(", ")} }`}  # say which mean RUNNING, FINISHED and FAILED`,
    );
  }
  lines.push(...optionalLines({ final }));
  return lines;
}

/** A method that counts a run's rows by table, and where its answer has them. */
interface CountMethod {
  readonly at: AskablePath;
  readonly list: PlacedField;
  readonly rows: PlacedField;
  /** The first text of an entry. */
  readonly table: PlacedField | undefined;
}

function countMethod(method: DescMethodUnary): CountMethod | undefined {
  const names = requestNames(method.input);
  if (!/storage|count|tall(?:y|ies)|stat(?:s|istics)|facts/i.test(method.name) || names.run === undefined)
    return undefined;
  const list = listFields(method.output).find(({ field }) => field.message !== undefined);
  if (list === undefined) return undefined;
  const fields = singleFields(list.field.message!);
  const rows = fieldNamed(fields, /rows|count|total/i, isCount);
  if (rows === undefined) return undefined;
  const path = `${method.parent.typeName}.${method.name}`;
  const ids = {
    run: dotted(names.run),
    ...(names.instance === undefined ? {} : { instance: dotted(names.instance) }),
  };
  const table = fields.find(({ field }) => isText(field) || field.enum !== undefined);
  return { at: { path, names: ids, known: { path, parameters: [] } }, list, rows, table };
}

/** The gateway's names for the tables that it counts, from the method that probably counts. */
export function countedTables(
  methods: readonly DescMethodUnary[],
): { readonly at: AskablePath; namesIn(answer: JsonNode | undefined): string[] } | undefined {
  for (const method of methods) {
    const found = countMethod(method);
    if (found?.table === undefined) continue;
    const { at, list, table } = found;
    return {
      at,
      namesIn(answer) {
        const entries = nodeAt(answer, list.path);
        const nodes = entries?.kind === "array" ? entries.items : [];
        return [...new Set(nodes.flatMap((node) => scalarText(nodeAt(node, table.path)) ?? []))];
      },
    };
  }
  return undefined;
}

function storageLines(method: DescMethodUnary, counted: readonly string[]): string[] | undefined {
  const found = countMethod(method);
  if (found === undefined) return undefined;
  const { list, rows, table } = found;
  const names = requestNames(method.input);
  const fields = singleFields(list.field.message!);
  const first = fieldNamed(fields, /^(?:first|earliest|min)/i, isTime);
  const last = fieldNamed(fields, /^(?:last|latest|max)/i, isTime);
  const tables = counted.map((name) => `${scalar(name)}: ${unsure(tableOfName(name))}`);
  return [
    methodLine(method, "by its name"),
    `parameters: ${requestText(names, ["instance", "run", "from", "to"])}  # by their names`,
    listLine(list),
    pathLine("table", table, "the first text of an entry"),
    tables.length === 0
      ? `tables: ${unsure(undefined)}  # the gateway's names for tables, its name first: \`{ trades: fills }\``
      : `tables: { ${tables.join(", ")} }  # by their names: confirm each, and remove those that are not tables of runvault`,
    pathLine("rows", rows, "by its name"),
    ...optionalLines({ first, last, final: fieldNamed(fields, /final|sealed|complete|closed/i, isBool) }),
    ...unitLines([first, last]),
  ];
}

function summaryLines(method: DescMethodUnary): string[] | undefined {
  const names = requestNames(method.input);
  if (!/summary|describe|^Get(?:Run|Session|Execution)$/i.test(method.name) || names.run === undefined)
    return undefined;
  return [
    methodLine(method, "by its name"),
    `parameters: ${requestText(names, ["instance", "run"])}  # by their names`,
  ];
}

/** The list of instances or runs in an answer, by its own name or the method's. */
function listIn({ name, output }: DescMethodUnary, what: "instances" | "runs"): PlacedField | undefined {
  const lists = listFields(output);
  const own = lists.find(({ field }) => listNamed(field.name) === what);
  if (own !== undefined) return own;
  return listNamed(name.replace(/^(?:List|Get|Fetch|Query)/, "")) === what ? lists[0] : undefined;
}

function methodLine({ parent, name }: DescMethodUnary, why: string): string {
  return `method: ${scalar(`${parent.typeName}.${name}`)}  # ${why}`;
}

function listLine({ path }: PlacedField): string {
  return `list: ${scalar(dotted(path))}`;
}

function pathLine(key: string, placed: PlacedField | undefined, why: string): string {
  return placed === undefined
    ? `${key}: "?"  # no field has such a name`
    : `${key}: ${scalar(dotted(placed.path))}  # ${why}`;
}

function optionalLines(fields: Readonly<Record<string, PlacedField | undefined>>): string[] {
  return Object.entries(fields).flatMap(([key, placed]) =>
    placed === undefined ? [] : [pathLine(key, placed, "by its name")],
  );
}

function unitLines(times: readonly (PlacedField | undefined)[]): string[] {
  const counts = times.filter((placed) => placed !== undefined && !isTimestamp(placed.field.message));
  return counts.length === 0 ? [] : ['unit: "?"  # unit of these times: descriptors do not say'];
}

function isBool(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.scalar === boolType;
}

/** ScalarType.BOOL */
const boolType = 8;
