import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { RunRef } from "../../model/source.ts";
import { ignoresParameter, impossibleRuns, type ListedIds } from "./filter-probe.ts";

/** What is known of a table's route by the answers that came. */
export interface FilterKnowledge {
  /** Runs that cannot exist were asked for in the form that gave rows of one that does, and gave none. */
  isFiltered: boolean;
  /** Runs of which it was shown that the route does not take those of a like name for them. */
  readonly filtered: Set<string>;
}

/** Nothing is to be shown of a route whose rows say whose they are. */
export function filterKnowledge({ namesRun, namesInstance }: RouteTraits): FilterKnowledge {
  return { isFiltered: namesRun && namesInstance, filtered: new Set() };
}

/** A route, and how runs are asked for that cannot exist. */
export interface FilterProbe {
  readonly request: Parameters<typeof impossibleRuns>[0];
  readonly traits: RouteTraits;
  readonly known: FilterKnowledge;
  /** The ids that the gateway lists, of runs those of an instance; undefined where a list fails. */
  readonly listed: (instanceId: string, signal: AbortSignal) => Promise<ListedIds | undefined>;
  /** A run's rows, asked for in the form that gave those of the run in question; one is enough. */
  rowsOf(run: RunRef): AsyncIterable<Uint8Array>;
  /** How the gateway says that a run is not there, or that no such run can be. */
  readonly notThere: ReadonlySet<ErrorCode>;
}

/** How any gateway says so. */
export const notThere: ReadonlySet<ErrorCode> = new Set([
  "run_not_found",
  "instance_not_found",
  "resource_not_found",
  "history_unavailable",
  "history_identity_conflict",
  "gone",
  "refused",
]);

/** Throws `not_filtered` where runs that cannot exist have rows. */
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
