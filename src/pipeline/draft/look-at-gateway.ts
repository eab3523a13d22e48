import { concernsAll } from "../../extract/choose/named-runs.ts";
import type { HistorySource, InstanceEntry, RunEntry } from "../../model/source.ts";
import { idFault, shownId } from "../../model/text/id-fault.ts";

/** What a job file needs to know about a gateway. */
export interface GatewayLook {
  /** By name. */
  readonly instances: readonly InstanceEntry[];
  /** Names of instances that cannot be requested, safe to show. */
  readonly leftOut: readonly string[];
  /** Whether it counts rows, so that an archive can be proven by counts; null if there was no run to ask about. */
  readonly hasFacts: boolean | null;
  /** Whether it also counts the rows of a growing run up to a time. */
  readonly countsGrowing: boolean;
  /** Whether finished runs have a version that changes with their rows; null if there were none. */
  readonly hasVersions: boolean | null;
  /** Unknown words for the status of runs, sorted. */
  readonly unknownStatuses: readonly string[];
}

/** Number of instances whose runs are requested: enough to see what a gateway does. */
const mostAsked = 5;
const knownStatuses = new Set(["RUNNING", "FINISHED", "FAILED"]);

/**
 * Asks a gateway for what a job file depends on: its instances, some of their runs, facts of one. Throws if it has no
 * list.
 */
export async function lookAtGateway(source: HistorySource, signal: AbortSignal): Promise<GatewayLook> {
  const listed = await source.instances(signal);
  const askable = listed
    .filter(({ instanceId }) => idFault(instanceId) === null)
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const runs: RunEntry[] = [];
  const instances = [...askable];
  for (const [at, instance] of askable.slice(0, mostAsked).entries()) {
    const own = (await askedFor(signal, () => source.runs(instance.instanceId, signal))) ?? [];
    runs.push(...own);
    // a list of instances may leave out their runs
    const runIds = new Set([...instance.runIds, ...own.map(({ runId }) => runId)]);
    instances[at] = { ...instance, runIds: [...runIds] };
  }
  const ended = runs.filter((run) => run.final || run.ended !== undefined);
  const latest = ended.reduce<RunEntry | null>(
    (last, run) => (last === null || run.started > last.started ? run : last),
    null,
  );
  // undefined if it could not be asked
  const facts = latest === null ? undefined : await askedFor(signal, () => source.facts(latest, {}, signal));
  // with a profile, counts may cover only whole runs
  const within = { to: latest === null ? undefined : latest.started + 1n };
  const bounded =
    latest === null || facts == null || source.described === undefined
      ? undefined
      : await askedFor(signal, () => source.facts(latest, within, signal));
  return {
    instances,
    leftOut: listed
      .filter(({ instanceId }) => idFault(instanceId) !== null)
      .map(({ instanceId }) => shownId(instanceId)),
    hasFacts: facts === undefined ? null : facts !== null,
    countsGrowing: bounded !== null,
    hasVersions:
      ended.length === 0 ? null : ended.every(({ storageVersion }) => storageVersion !== undefined),
    unknownStatuses: [...new Set(runs.map(({ status }) => status))]
      .filter((status) => !knownStatuses.has(status.toUpperCase()))
      .sort(),
  };
}

/** An answer; undefined if this one instance or run has none. */
async function askedFor<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (thrown) {
    signal.throwIfAborted();
    if (concernsAll(thrown)) throw thrown;
    return undefined;
  }
}
