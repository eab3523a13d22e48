import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type {
  HistorySource,
  InstanceEntry,
  Listed,
  ListedRun,
  RunListing,
  RunRef,
} from "../../model/source.ts";
import { Turns } from "../../model/turns.ts";
import { runNotFound } from "../../model/usual-errors.ts";
import { isRoundNumber } from "../plan/round-number.ts";
import type { RunDescription } from "../run/run-description.ts";
import { Gathering } from "../together/gathering.ts";
import { type RunStanding, type StatusRules, standingOf } from "./run-status.ts";

/** A run as its source describes it, with what that says about its end. */
export interface DescribedRun {
  readonly run: RunDescription;
  readonly standing: RunStanding;
}

/** A described run, with the documents that the description came with. */
interface Found extends DescribedRun {
  readonly documents: { readonly run?: Uint8Array | null; readonly summary?: Uint8Array | null };
}

/**
 * A source's lists of runs, requested once per job: one object for all runs of a command. Failures are not kept; the
 * next call asks the source again.
 */
export class RunLists {
  readonly #source: HistorySource;
  readonly #rules: StatusRules;
  #listings: Promise<readonly RunListing[]> | undefined;
  readonly #instances = new Map<RunListing, Promise<Listed<InstanceEntry>>>();
  readonly #runs = new Map<RunListing, Map<string, Promise<Listed<ListedRun> | null>>>();
  readonly #current = new Map<RunListing, Map<string, Promise<string | null>>>();
  readonly #summaries = new Map<string, Promise<Uint8Array | null>>();
  /** By instance, its document. */
  readonly #documents = new Map<string, Promise<Uint8Array | null>>();
  /** Lists that failed while another had the run: asking each again for each run would cost all retries each time. */
  readonly #failed = new Map<RunListing, Set<string>>();
  /** Gathers runs to be described again, so that one request serves many. */
  #again: Gathering<RunRef, RunDescription> | undefined;

  #marksFinal: boolean;

  constructor(source: HistorySource, rules: StatusRules) {
    this.#source = source;
    this.#rules = rules;
    this.#marksFinal = rules.marksFinal === true;
  }

  /** Whether the source is known to mark runs as final, from any list so far or from the archive's memory. */
  get marksFinal(): boolean {
    return this.#marksFinal;
  }

  /** The source's ways of listing its runs; at least one. */
  async listings(signal?: AbortSignal): Promise<readonly RunListing[]> {
    this.#listings ??= (
      this.#source.listings?.(signal) ?? Promise.resolve([onlyListing(this.#source)])
    ).catch((thrown: unknown) => {
      this.#listings = undefined;
      throw thrown;
    });
    return await this.#listings;
  }

  /** The instances of one listing, with the runs that it names for them. */
  async instances(listing: RunListing, signal?: AbortSignal): Promise<Listed<InstanceEntry>> {
    return await kept(this.#instances, listing, () => listing.instances(signal));
  }

  /** The runs of an instance in one listing; null if it has no such list. */
  async runs(
    listing: RunListing,
    instanceId: string,
    signal?: AbortSignal,
  ): Promise<Listed<ListedRun> | null> {
    return await kept(ownMap(this.#runs, listing), instanceId, async () => {
      const runs = await listing.runs(instanceId, signal);
      this.#marksFinal ||= runs !== null && hasFinal(runs);
      return runs;
    });
  }

  /** The run that an instance's own document calls current; null if it names none. */
  async currentRun(listing: RunListing, instanceId: string, signal?: AbortSignal): Promise<string | null> {
    return await kept(ownMap(this.#current, listing), instanceId, () =>
      listing.currentRun(instanceId, signal),
    );
  }

  /** The same runs, requested again; the earlier list is forgotten. */
  async runsAgain(
    listing: RunListing,
    instanceId: string,
    signal?: AbortSignal,
  ): Promise<readonly ListedRun[] | null> {
    ownMap(this.#runs, listing).delete(instanceId);
    return await this.runs(listing, instanceId, signal);
  }

  /**
   * The run as its source describes it: in a list of runs or, if only something else names it, in its summary. Throws
   * `run_not_found` or `instance_not_found`.
   */
  async describe(run: RunRef, signal?: AbortSignal): Promise<RunDescription> {
    return (await this.#find(run, signal)).run;
  }

  /** The same, from an answer no older than the call, for callers that need to know whether the run has changed. */
  async describeAgain(run: RunRef, signal?: AbortSignal): Promise<RunDescription> {
    if (this.#again !== undefined) return await this.#again.join(run, signal);
    const [described] = await this.#describeAllAgain([run], signal);
    return described!();
  }

  /** From now on one list describes many runs again, once `most` of them wait or `pauseMs` after the last joined. */
  describeAgainTogether(
    most: number,
    pauseMs: () => number,
    signal: AbortSignal,
  ): { readonly hurry: () => void } {
    this.#again = new Gathering((runs) => this.#describeAllAgain(runs, signal), { most, pauseMs });
    return this.#again;
  }

  async #describeAllAgain(runs: readonly RunRef[], signal?: AbortSignal): Promise<(() => RunDescription)[]> {
    const found = await Promise.allSettled(runs.map((run) => this.#listOf(run, signal)));
    for (const [index, outcome] of found.entries()) {
      const run = runs[index]!;
      this.#summaries.delete(keyOf(run));
      if (outcome.status === "rejected" || outcome.value.listing === undefined) continue;
      ownMap(this.#runs, outcome.value.listing).delete(run.instanceId);
    }
    const described = await Promise.allSettled(
      runs.map(async (run, index) => {
        const outcome = found[index]!;
        if (outcome.status === "rejected") throw outcome.reason;
        return await this.describe(run, signal);
      }),
    );
    return described.map((outcome) => () => {
      if (outcome.status === "rejected") throw outcome.reason;
      return outcome.value;
    });
  }

  /** The same as `describe`, with what is known about the run's end. */
  async look(run: RunRef, signal?: AbortSignal): Promise<DescribedRun> {
    const { run: described, standing } = await this.#find(run, signal);
    return { run: described, standing };
  }

  /**
   * A run's document, without another request if it came before: its instance's document, its entry in the list, or its
   * summary. Null if the source does not have it.
   */
  async document(
    run: RunRef,
    kind: "instance" | "run" | "summary",
    signal?: AbortSignal,
  ): Promise<Uint8Array | null> {
    if (kind === "instance")
      return await kept(this.#documents, run.instanceId, () => this.#source.document(run, kind, signal));
    const { documents } = await this.#find(run, signal);
    const brought = documents[kind];
    return brought === undefined ? await this.#source.document(run, kind, signal) : brought;
  }

  /** What a listing says about the ends of an instance's runs, or why an entry says nothing; null if it has no list. */
  async standings(
    listing: RunListing,
    instanceId: string,
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, RunStanding | RunvaultError> | null> {
    const runs = await this.runs(listing, instanceId, signal);
    if (runs === null) return null;
    return new Map(
      await new Turns().map(
        runs,
        (entry) => [entry.runId, entry.fault ?? this.#standing(entry, runs)] as const,
      ),
    );
  }

  /**
   * The first list that has the run, or the ids in the lists that do not. A failed list or an unreadable entry matters only
   * if no list has the run.
   */
  async #listOf(run: RunRef, signal?: AbortSignal) {
    const others: (readonly string[])[] = [];
    let goesOn = false;
    const failures: { readonly listing: RunListing; readonly thrown: unknown }[] = [];
    const faults: RunvaultError[] = [];
    for (const listing of await this.listings(signal)) {
      if (this.#failed.get(listing)?.has(run.instanceId)) continue;
      try {
        const runs = await this.runs(listing, run.instanceId, signal);
        const entry = runs === null ? undefined : entriesOf(runs).get(run.runId);
        if (entry?.fault !== undefined) {
          faults.push(entry.fault);
          continue;
        }
        if (entry !== undefined && runs !== null) {
          for (const { listing: failed } of failures) {
            this.#failed.set(failed, new Set(this.#failed.get(failed)).add(run.instanceId));
          }
          return { listing, entry, runs };
        }
        if (runs !== null) others.push(runs.map(({ runId }) => runId));
        if (runs?.rest !== undefined) goesOn = true;
      } catch (thrown) {
        signal?.throwIfAborted();
        failures.push({ listing, thrown });
      }
    }
    if (faults.length > 0) throw faults[0];
    if (failures.length > 0) throw failures[0]!.thrown;
    return { others, goesOn };
  }

  async #find(run: RunRef, signal?: AbortSignal): Promise<Found> {
    const found = await this.#listOf(run, signal);
    if (found.entry !== undefined) return this.#fromEntry(found.entry, found.runs);
    const listed = found.others;
    const { isNamed, known } = await this.#named(run, signal);
    // a list that may have been cut proves nothing about runs it lacks; without a list, any run may exist
    const mayBeUnlisted = listed.length === 0 ? known.length === 0 : found.goesOn || listed.some(mayBeCut);
    if (!isNamed && !mayBeUnlisted) throw runNotFound(run, listed[0] ?? known);
    const told = await this.#fromSummary(run, listed.length > 0, signal);
    if (!isNamed && listed.length > 0 && !found.goesOn && told.documents.summary === null)
      throw runNotFound(run, listed[0]);
    return told;
  }

  /** Whether the instances name the run, and the runs they do name. */
  async #named(run: RunRef, signal?: AbortSignal): Promise<{ isNamed: boolean; known: readonly string[] }> {
    const known: string[] = [];
    for (const listing of await this.listings(signal)) {
      // a transport without this list has nothing to say
      const entries = await this.instances(listing, signal).catch(noneWhereMissing);
      const own = entries.find(({ instanceId }) => instanceId === run.instanceId);
      for (const runId of own?.runIds ?? []) known.push(runId);
    }
    if (known.includes(run.runId)) return { isNamed: true, known };
    for (const listing of known.length === 0 ? [] : await this.listings(signal)) {
      if ((await this.currentRun(listing, run.instanceId, signal)) === run.runId)
        return { isNamed: true, known };
    }
    return { isNamed: false, known };
  }

  #fromEntry(entry: ListedRun, runs: readonly ListedRun[]): Found {
    const { text, saysFinal: _, ...rest } = entry;
    const standing = this.#standing(entry, runs);
    const documents = text === undefined ? {} : { run: text };
    return { run: { ...rest, final: standing.final, isMarkedFinal: entry.final }, standing, documents };
  }

  #standing(entry: ListedRun, runs: readonly ListedRun[]): RunStanding {
    // a profile that says where the mark is implies that the gateway knows it, whatever the other runs say
    const isKnown = this.#source.described !== undefined && entry.saysFinal === true;
    // another list may know the mark although this one does not
    const isSaid = this.#marksFinal && entry.saysFinal !== false;
    return standingOf(entry, isKnown || isSaid || hasFinal(runs), this.#rules);
  }

  async #fromSummary(run: RunRef, hasList: boolean, signal?: AbortSignal): Promise<Found> {
    const { instanceId, runId } = run;
    const summary = await kept(this.#summaries, keyOf(run), () =>
      this.#source.document(run, "summary", signal),
    );
    const parsed = summarySchema.safeParse(summary === null ? null : jsonOf(summary, run));
    const { status = "UNKNOWN", ts_started, ts_ended } = parsed.data ?? {};
    const said = { status, started: timeOf(ts_started), ended: timeOf(ts_ended), final: false };
    const standing = standingOf({ ...said, saysFinal: false }, false, this.#rules);
    return {
      run: {
        instanceId,
        runId,
        ...said,
        final: standing.final,
        isMarkedFinal: false,
        storageVersion: undefined,
      },
      standing,
      // a source without a list of runs has no entry of this one
      documents: hasList ? { summary } : { summary, ...noEntry },
    };
  }
}

const noEntry = { run: null };

const int64 = z.string().regex(/^-?\d{1,19}$/);
const summarySchema = z.object({
  status: z.string().optional(),
  ts_started: int64.optional(),
  ts_ended: int64.optional(),
});

function timeOf(text: string | undefined): bigint | undefined {
  return text === undefined || text === "0" ? undefined : BigInt(text);
}

/** The single listing of a source that does not distinguish several. */
function onlyListing(source: HistorySource): RunListing {
  return {
    by: source.label,
    instances: (signal) => source.instances(signal),
    runs: async (instanceId, signal) => {
      const runs = await source.runs(instanceId, signal);
      return runs === null ? null : runs.map((run) => ({ ...run, text: undefined }));
    },
    currentRun: async () => null,
  };
}

function noneWhereMissing(thrown: unknown): readonly InstanceEntry[] {
  if (thrown instanceof RunvaultError && thrown.code === "route_not_found") return [];
  throw thrown;
}

function mayBeCut(runIds: readonly string[]): boolean {
  return isRoundNumber(runIds.length);
}

/** Lookups for each run in a list: scanning a long one each time would take minutes. */
const entries = new WeakMap<readonly ListedRun[], ReadonlyMap<string, ListedRun>>();
const withFinal = new WeakMap<readonly ListedRun[], boolean>();

function entriesOf(runs: readonly ListedRun[]): ReadonlyMap<string, ListedRun> {
  let byId = entries.get(runs);
  if (byId === undefined) {
    byId = new Map(runs.map((entry) => [entry.runId, entry]));
    entries.set(runs, byId);
  }
  return byId;
}

/** Whether the list calls any run final. */
function hasFinal(runs: readonly ListedRun[]): boolean {
  let is = withFinal.get(runs);
  if (is === undefined) {
    is = runs.some(({ final }) => final);
    withFinal.set(runs, is);
  }
  return is;
}

/** The kept data of one listing. */
function ownMap<V>(maps: Map<RunListing, Map<string, V>>, listing: RunListing): Map<string, V> {
  const own = maps.get(listing) ?? new Map<string, V>();
  maps.set(listing, own);
  return own;
}

/** A map's value for a key, requested if missing; failures are not kept. */
async function kept<K, V>(map: Map<K, Promise<V>>, key: K, ask: () => Promise<V>): Promise<V> {
  const before = map.get(key);
  if (before !== undefined) return await before;
  const asked = ask();
  map.set(key, asked);
  try {
    return await asked;
  } catch (thrown) {
    if (map.get(key) === asked) map.delete(key);
    throw thrown;
  }
}

function keyOf({ instanceId, runId }: RunRef): string {
  return JSON.stringify([instanceId, runId]);
}

function jsonOf(bytes: Uint8Array, run: RunRef): unknown {
  try {
    return parseJson(Buffer.from(bytes).toString("utf8"));
  } catch (cause) {
    throw new RunvaultError("not_a_gateway", "the summary document is not JSON", {
      cause,
      place: { instance: run.instanceId, run: run.runId },
    });
  }
}
