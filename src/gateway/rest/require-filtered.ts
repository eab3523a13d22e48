import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { RunRef } from "../../model/source.ts";
import { ignoresParameter, impossibleRuns, type ListedIds } from "./filter-probe.ts";

/** What answers have shown about a table's route. */
export interface FilterKnowledge {
  /** Impossible runs were requested in the form that returned rows of a real one, and had none. */
  isFiltered: boolean;
  /** Runs for which it was shown that the route does not confuse similar names. */
  readonly filtered: Set<string>;
}

/** Routes whose rows name their run need no such proof. */
export function filterKnowledge({ namesRun, namesInstance }: RouteTraits): FilterKnowledge {
  return { isFiltered: namesRun && namesInstance, filtered: new Set() };
}

/** A route, and how to request impossible runs from it. */
export interface FilterProbe {
  readonly request: Parameters<typeof impossibleRuns>[0];
  readonly traits: RouteTraits;
  readonly known: FilterKnowledge;
  /** The ids that the gateway lists, or an instance's runs; undefined if a list fails. */
  readonly listed: (instanceId: string, signal: AbortSignal) => Promise<ListedIds | undefined>;
  /** A run's rows, requested in the same form as those of the real run; one row is enough. */
  rowsOf(run: RunRef): AsyncIterable<Uint8Array>;
  /** Codes by which the gateway says that a run is missing or impossible. */
  readonly notThere: ReadonlySet<ErrorCode>;
}

/** The codes of any gateway. */
export const notThere: ReadonlySet<ErrorCode> = new Set([
  "run_not_found",
  "instance_not_found",
  "resource_not_found",
  "history_unavailable",
  "history_identity_conflict",
  "gone",
  "refused",
]);

/** Throws `not_filtered` if impossible runs have rows. */
export async function requireFiltered(
  probe: FilterProbe,
  run: RunRef,
  place: ErrorPlace,
  signal: AbortSignal,
): Promise<void> {
  const { request, traits, known } = probe;
  if (traits.namesRun && traits.namesInstance) return;
  const key = JSON.stringify([run.instanceId, run.runId]);
  if (known.filtered.has(key)) return;
  const ids = await probe.listed(run.instanceId, signal);
  const others = impossibleRuns(request, traits, run, ids, place);
  for (const other of known.isFiltered ? others.filter(({ isNear }) => isNear) : others) {
    if ((await hasRows(probe, other)) && other.isImpossible) throw ignoresParameter(other, request, place);
  }
  known.isFiltered = true;
  known.filtered.add(key);
}

async function hasRows({ rowsOf, notThere }: FilterProbe, { instanceId, runId }: RunRef): Promise<boolean> {
  try {
    for await (const chunk of rowsOf({ instanceId, runId })) if (chunk.length > 0) return true;
    return false;
  } catch (thrown) {
    if (thrown instanceof RunvaultError && notThere.has(thrown.code)) return false;
    throw thrown;
  }
}
