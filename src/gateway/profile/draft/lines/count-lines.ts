import type { RunRef } from "../../../../model/source.ts";
import { jsonOf } from "../../check/asker.ts";
import { arraysIn, type JsonNode, type JsonObject, leavesOf, nodeAt } from "../../check/json-node.ts";
import { scalarText } from "../../check/sample.ts";
import { type DraftLine, indented, lineText, pathScalar, scalar, unsure } from "../draft-line.ts";
import { tableOfName } from "../seen/guessed-names.ts";
import type { AskablePath } from "../seen/known-paths.ts";
import type { SampleAsker } from "../seen/sample-asker.ts";
import { isTimeNode, timeUnitText } from "../time-unit.ts";
import { parametersLine, timesLine } from "./table-lines.ts";

/**
 * The lines for row counts, from the first of these paths that has counts for a run; undefined if none does. `time` is
 * the line of `ts_event`.
 */
export async function countLines(
  asker: SampleAsker,
  paths: readonly AskablePath[],
  run: RunRef | undefined,
  time: DraftLine | undefined,
): Promise<{ readonly at: AskablePath; readonly lines: readonly string[] } | undefined> {
  if (run === undefined) return undefined;
  for (const at of paths) {
    const told = await asker.ask(at, { instance: run.instanceId, run: run.runId });
    if (told?.status !== 200) continue;
    for (const [list, items] of arraysIn(jsonOf(told))) {
      const entries = items.filter((item) => item.kind === "object");
      const lines = entries.length === items.length ? linesOf(at, list, entries, time) : undefined;
      if (lines !== undefined) return { at, lines: ["storage:", ...indented(lines.map(lineText))] };
    }
  }
  return undefined;
}

function linesOf(
  at: AskablePath,
  list: readonly string[],
  entries: readonly JsonObject[],
  time: DraftLine | undefined,
): DraftLine[] | undefined {
  const fields = entries[0] === undefined ? [] : [...leavesOf(entries[0])];
  const named = (name: RegExp, fits: (node: JsonNode) => boolean) =>
    fields.find(([path, node]) => name.test(path.at(-1)!) && fits(node))?.[0];
  const rows = named(/^(?:rows|count|total)|(?:rows|count)$/i, (node) =>
    /^\d+$/.test(scalarText(node) ?? ""),
  );
  const table = fields.find(([, node]) => node.kind === "string" && !isTimeNode(node))?.[0];
  if (rows === undefined || table === undefined) return undefined;
  const first = named(/^(?:first|earliest|min|from)/i, isTimeNode);
  const last = named(/^(?:last|latest|max|to)/i, isTimeNode);
  const final = named(/final|sealed|complete|closed|done/i, ({ kind }) => kind === "boolean");
  const words = [...new Set(entries.map((entry) => scalarText(nodeAt(entry, table)) ?? ""))];
  const times = [first, last].flatMap((path) => (path === undefined ? [] : [nodeAt(entries[0], path)!]));
  const { unit, reason } = timeUnitText(times);
  const optional = (key: string, path: readonly string[] | undefined): DraftLine[] =>
    path === undefined ? [] : [{ key, value: pathScalar(path), why: "by its name" }];
  return [
    { key: "path", value: scalar(at.path), why: "by its name; it counts rows" },
    parametersLine(at),
    ...[timesLine(at, time)].filter((line) => line !== undefined),
    { key: "list", value: pathScalar(list), why: "" },
    { key: "table", value: pathScalar(table), why: "the first text of an entry" },
    {
      key: "tables",
      value: `{ ${words.map((word) => `${scalar(word)}: ${unsure(tableOfName(word))}`).join(", ")} }`,
      why: "by their names: confirm each, and remove those that are not tables of runvault",
    },
    { key: "rows", value: pathScalar(rows), why: "by its name" },
    ...optional("first", first),
    ...optional("last", last),
    ...(times.length === 0 ? [] : [{ key: "unit", value: unit, why: reason }]),
    ...optional("final", final),
  ];
}
