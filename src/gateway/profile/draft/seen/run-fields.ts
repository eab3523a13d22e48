import { type JsonNode, type JsonObject, leavesOf, nodeAt } from "../../check/json-node.ts";
import { scalarText } from "../../check/sample.ts";
import { type DraftLine, pathScalar, scalar, someOf, unsure } from "../draft-line.ts";
import { isTimeNode, timeUnitText } from "../time-unit.ts";
import { likelyStatus } from "./guessed-words.ts";
import type { SeenList } from "./seen-list.ts";

/** Fields of the runs in a list, apart from their ids. */
export interface RunFieldsSeen {
  readonly started: readonly string[] | undefined;
  readonly ended: readonly string[] | undefined;
  readonly status: readonly string[] | undefined;
  readonly final: readonly string[] | undefined;
}

const startedName = /^(?:start|open|begin|began|creat|from|launch)/i;
const endedName = /^(?:end|clos|finish|stop|to$|until|complet)/i;
const statusName = /status|state|phase/i;
const finalName = /final|sealed|complete|closed|done/i;

export function runFieldsIn({ entries, id }: SeenList): RunFieldsSeen {
  const objects = entries.map(({ node }) => node).filter((node) => node.kind === "object");
  const fields = fieldsOf(objects).filter(({ path }) => path.join("\0") !== id.join("\0"));
  const times = fields.filter(({ nodes }) => {
    const values = nodes.filter(({ kind }) => kind !== "null");
    return values.length > 0 && values.every(isTimeNode);
  });
  const named = (name: RegExp, of: typeof fields) => of.find(({ path }) => name.test(telling(path)))?.path;
  // if the names of two times do not help: a run begins before it ends
  const [one, two] = times;
  const isPair =
    times.length === 2 &&
    objects.every((entry) => !isAfter(nodeAt(entry, one!.path), nodeAt(entry, two!.path)));
  const started = named(startedName, times) ?? (isPair ? one!.path : undefined);
  const ended = named(endedName, times) ?? (isPair ? two!.path : undefined);
  const booleans = fields.filter(
    ({ nodes }) => nodes.length === objects.length && nodes.every(({ kind }) => kind === "boolean"),
  );
  const words = fields.filter(
    ({ nodes }) =>
      nodes.every(({ kind }) => kind === "string" || kind === "number") &&
      !times.some((time) => time.nodes === nodes),
  );
  const few = words.find(({ nodes }) =>
    nodes.every((node) => likelyStatus(scalarText(node) ?? "") !== undefined),
  );
  return {
    started,
    ended: ended === started ? undefined : ended,
    status: named(statusName, words) ?? few?.path,
    final: named(finalName, booleans),
  };
}

/** A run's status by these fields; undefined if they do not say. */
export function statusOf(entry: JsonNode, { status, ended }: RunFieldsSeen): ReturnType<typeof likelyStatus> {
  const word = status === undefined ? undefined : likelyStatus(scalarText(nodeAt(entry, status)) ?? "");
  if (word !== undefined || ended === undefined) return word;
  const end = nodeAt(entry, ended);
  return end === undefined || end.kind === "null" ? "RUNNING" : "FINISHED";
}

export function runFieldLines({ entries }: SeenList, seen: RunFieldsSeen): DraftLine[] {
  const nodesAt = (path: readonly string[] | undefined) =>
    path === undefined
      ? []
      : (entries
          .map(({ node }) => nodeAt(node, path))
          .filter((node) => node !== undefined && node.kind !== "null") as JsonNode[]);
  const lines: DraftLine[] = [];
  for (const key of ["started", "ended"] as const) {
    const path = seen[key];
    if (path !== undefined)
      lines.push({ key, value: pathScalar(path), why: `such as ${nodesAt(path)[0]?.text ?? "null"}` });
  }
  const times = [...nodesAt(seen.started), ...nodesAt(seen.ended)];
  if (times.length > 0) {
    const { unit, reason } = timeUnitText(times);
    lines.push({ key: "unit", value: unit, why: reason });
  }
  if (seen.status !== undefined) {
    const words = [...new Map(nodesAt(seen.status).map((node) => [node.text, node])).values()].slice(0, 8);
    const pairs = words.map((node) => {
      const text = scalarText(node) ?? "";
      return `${node.kind === "string" ? scalar(text) : text}: ${unsure(likelyStatus(text))}`;
    });
    lines.push(
      {
        key: "status",
        value: pathScalar(seen.status),
        why: `seen: ${someOf(words.map(({ text }) => text))}`,
      },
      {
        key: "words",
        value: `{ ${pairs.join(", ")} }`,
        why: "confirm each, and add the gateway's other words for RUNNING, FINISHED, FAILED",
      },
    );
  }
  if (seen.final !== undefined)
    lines.push({
      key: "final",
      value: pathScalar(seen.final),
      why: "by its name: whether no more rows will be added",
    });
  return lines;
}

function fieldsOf(
  objects: readonly JsonObject[],
): { readonly path: readonly string[]; readonly nodes: JsonNode[] }[] {
  const fields = new Map<string, { readonly path: readonly string[]; readonly nodes: JsonNode[] }>();
  for (const entry of objects) {
    for (const [path, node] of leavesOf(entry)) {
      const known = fields.get(path.join("\0"));
      if (known === undefined) fields.set(path.join("\0"), { path, nodes: [node] });
      else known.nodes.push(node);
    }
  }
  return [...fields.values()];
}

/** The part of a path that names the value. */
function telling(path: readonly string[]): string {
  const last = path.at(-1)!;
  return /^(?:name|value|code)$/i.test(last) && path.length > 1 ? path.at(-2)! : last;
}

function isAfter(a: JsonNode | undefined, b: JsonNode | undefined): boolean {
  const [one, two] = [scalarText(a), scalarText(b)];
  if (one === undefined || two === undefined) return false;
  return one.length === two.length ? one > two : one.length > two.length && !/\D/.test(one + two);
}
