import { concernsAll } from "../../extract/choose/named-runs.ts";
import type { HistorySource, InstanceEntry, RunEntry } from "../../model/source.ts";
import { idFault, shownId } from "../../model/text/id-fault.ts";

/** What a gateway says of itself, as far as a job file depends on it. */
export interface GatewayLook {
  /** By name. */
  readonly instances: readonly InstanceEntry[];
  /** Names of instances that no gateway can be asked for, as they may be shown. */
  readonly leftOut: readonly string[];
  /** Whether it counts rows, so that an archive can be proven by counts; null where there was no run to ask about. */
  readonly hasFacts: boolean | null;
  /** Whether, where it counts rows, it also counts those of a run that goes on, up to a time. */
  readonly countsGrowing: boolean;
  /** Whether finished runs have a mark that changes with their rows; null where there was none. */
  readonly hasVersions: boolean | null;
  /** Words for what runs are that runvault does not know, sorted. */
  readonly unknownStatuses: readonly string[];
}

/** Whose runs are looked at: enough to tell what a gateway does, few enough to ask for. */
const mostAsked = 5;
const knownStatuses = new Set(["RUNNING", "FINISHED", "FAILED"]);

/** Asks a gateway what a job file for it depends on: its instances, runs of some, facts of one. Throws where no list is to be had. */
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
    // a list of instances need not name their runs
    const runIds = new Set([...instance.runIds, ...own.map(({ runId }) => runId)]);
    instances[at] = { ...instance, runIds: [...runIds] };
  }
  const ended = runs.filter((run) => run.final || run.ended !== undefined);
  const latest = ended.reduce<RunEntry | null>(
    (last, run) => (last === null || run.started > last.started ? run : last),
    null,
  );
  // undefined where it could not be asked
  const facts = latest === null ? undefined : await askedFor(signal, () => source.facts(latest, {}, signal));
  // by a profile, counts may be of a whole run alone
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

/** An answer; undefined where one instance or run has none for reasons of its own. */
async function askedFor<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (thrown) {
    signal.throwIfAborted();
    if (concernsAll(thrown)) throw thrown;
    return undefined;
  }
}
