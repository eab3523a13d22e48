import { idFault } from "../../../../model/text/id-fault.ts";
import { plainName } from "../../check/column-look.ts";
import { arraysIn, type JsonNode, type JsonObject, leavesOf, nodeAt } from "../../check/json-node.ts";
import { scalarText } from "../../check/sample.ts";
import { isTimeNode } from "../time-unit.ts";
import { parameterRole } from "./guessed-names.ts";

/** A list of instances or runs, as seen in an answer. */
export interface SeenList {
  /** Where it is in the answer. */
  readonly path: readonly string[];
  /** Where an entry has its id; empty if the entry is the id. */
  readonly id: readonly string[];
  readonly why: string;
  readonly entries: readonly { readonly id: string; readonly node: JsonNode }[];
}

/**
 * The list in an answer: the first array whose entries are or have unique ids. `named` is the gateway's name for such
 * an id elsewhere. Undefined if there is no list.
 */
export function seenList(
  answer: JsonNode | undefined,
  what: "instance" | "run",
  named: readonly string[],
): SeenList | undefined {
  for (const [path, items] of arraysIn(answer)) {
    if (items.length === 0) continue;
    if (items.every(({ kind }) => kind === "string") && areIds(items))
      return listOf(path, [], "entries are ids", items);
    const entries = items.filter((item) => item.kind === "object");
    if (entries.length < items.length) continue;
    const found = idIn(entries, what, named);
    if (found !== undefined) return listOf(path, found.path, found.why, items);
  }
  return undefined;
}

function listOf(
  path: readonly string[],
  id: readonly string[],
  why: string,
  items: readonly JsonNode[],
): SeenList {
  return { path, id, why, entries: items.map((node) => ({ id: scalarText(nodeAt(node, id)) ?? "", node })) };
}

function idIn(
  entries: readonly JsonObject[],
  what: "instance" | "run",
  named: readonly string[],
): { readonly path: readonly string[]; readonly why: string } | undefined {
  const paths = [...leavesOf(entries[0]!)]
    .map(([path]) => path)
    .filter((path) => areIds(entries.map((entry) => nodeAt(entry, path))));
  const other = what === "run" ? "instance" : "run";
  const names = paths.map((path) => path.at(-1)!);
  const tests: readonly ((name: string) => boolean)[] = [
    (name) => named.some((one) => plainName(one) === plainName(name)),
    (name) => /^id$/i.test(name),
    (name) => parameterRole(name) === what,
    (name) => /id$/i.test(name) && parameterRole(name) !== other,
    (name) => /^(?:name|key|code)$/i.test(name),
  ];
  for (const test of tests) {
    const at = names.findIndex(test);
    if (at >= 0) return { path: paths[at]!, why: "by its name" };
  }
  const first = paths.find((path) => entries.some((entry) => !isTimeNode(nodeAt(entry, path)!)));
  return first && { path: first, why: "the first field with unique values" };
}

/** Whether these are texts or whole numbers, all different, that can be used in a request. */
function areIds(nodes: readonly (JsonNode | undefined)[]): boolean {
  const ids = nodes.map(askableId);
  return ids.every((id) => id !== undefined) && new Set(ids).size === ids.length;
}

/** The id in a value: a text or whole number that fits into an address; otherwise undefined. */
export function askableId(node: JsonNode | undefined): string | undefined {
  if (node?.kind === "boolean" || (node?.kind === "number" && !/^\d+$/.test(node.text))) return undefined;
  const id = scalarText(node);
  return id === undefined || ["", ".", ".."].includes(id) || idFault(id) !== null ? undefined : id;
}
