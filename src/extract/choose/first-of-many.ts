import { RunvaultError } from "../../model/error.ts";
import { idFault } from "../../model/text/id-fault.ts";
import { countText } from "../../model/text/plural.ts";
import type { ListFinding } from "./list-finding.ts";

/** How many entries of one list with the same fault are reported one by one. */
const most = 10;

/**
 * The findings to report: of those with the same code about single entries of one list, the first ten, and one that says
 * how many more there are. A list may have a hundred thousand entries, all of them wrong.
 */
export function firstOfMany(findings: readonly ListFinding[]): ListFinding[] {
  const told: ListFinding[] = [];
  const others = new Map<string, { readonly finding: ListFinding; count: number }>();
  const counts = new Map<string, number>();
  for (const finding of findings) {
    const key = keyOf(finding);
    const count = key === null ? 0 : (counts.get(key) ?? 0) + 1;
    if (key !== null) counts.set(key, count);
    if (key === null || count <= most) told.push(finding);
    else others.set(key, { finding: others.get(key)?.finding ?? finding, count: count - most });
  }
  return [...told, ...[...others.values()].map(({ finding, count }) => restOf(finding, count))];
}

/** The group that a finding is counted in; null if it is not about a single entry. */
function keyOf({ instanceId, runIds, error }: ListFinding): string | null {
  const code = error?.code ?? "";
  if (runIds.length === 1) return JSON.stringify([code, instanceId]);
  // no request is sent for an instance with such an id, so the finding is about its entry
  const isOdd = runIds.length === 0 && instanceId !== null && idFault(instanceId) !== null;
  return isOdd ? JSON.stringify([code]) : null;
}

function restOf({ instanceId, runIds, error }: ListFinding, count: number): ListFinding {
  const isOfRuns = runIds.length === 1;
  const text = `and ${countText(count, isOfRuns ? "more run" : "more instance")} in the same list`;
  const instance = isOfRuns ? instanceId : null;
  if (error === null) return { instanceId: instance, runIds: [], text, error, count };
  const { code, scope, hint, place } = error;
  const rest = new RunvaultError(code, text, {
    scope,
    place: isOfRuns && place.instance !== undefined ? { instance: place.instance } : {},
    ...(hint === undefined ? {} : { hint }),
  });
  return { instanceId: instance, runIds: [], text: `${code}: ${text}`, error: rest, count };
}
