import { RunvaultError } from "../../model/error.ts";
import type { ListRest, RunListing } from "../../model/source.ts";
import { idFault, shownId } from "../../model/text/id-fault.ts";
import { countText } from "../../model/text/plural.ts";
import { Turns } from "../../model/turns.ts";
import { instanceNotFound } from "../../model/usual-errors.ts";
import { isRoundNumber } from "../plan/round-number.ts";
import { idsText, type ListFinding, listDoubt, listFailure, listNote } from "./list-finding.ts";
import type { DescribedRun, RunLists } from "./run-lists.ts";
import type { RunStanding } from "./run-status.ts";

/** A run that something names, with what all lists together say about its end. */
export interface NamedRun extends DescribedRun {
  /** True if any list says that it has ended. */
  readonly finished: boolean;
}

export interface NamedInstance {
  readonly instanceId: string;
  /** Oldest first, as far as the lists have an order. */
  readonly runs: readonly NamedRun[];
  /** Everything that is named, described or not. */
  readonly names: ReadonlySet<string>;
  /** True if the longest list may have been cut by a limit, and nothing else names the same runs. */
  readonly mayBeCut: boolean;
}

export interface NamedRuns {
  readonly instances: readonly NamedInstance[];
  readonly findings: readonly ListFinding[];
  /** Instances asked for that nothing at the source knows. */
  readonly unknown: readonly string[];
  /** Instances without any available list. */
  readonly failed: readonly string[];
  /** True if a list of instances failed: unnamed ones may exist. */
  readonly instancesFailed: boolean;
  /** True if the list of instances may have been cut by a limit. */
  readonly instancesMayBeCut: boolean;
}

/** One list's contents: the runs it names, and those that every other list should name, too. */
interface Claim {
  readonly by: string;
  readonly isList: boolean;
  readonly names: ReadonlySet<string>;
  readonly counted: readonly string[];
  /** The list's statements about its runs' ends. */
  readonly standings?: ReadonlyMap<string, RunStanding>;
  /** By run, why its entry cannot be read. */
  readonly faults?: ReadonlyMap<string, RunvaultError>;
  /** What it says about runs that it does not name. */
  readonly rest?: ListRest | undefined;
  /** A run that it calls the latest but does not list. */
  readonly latestBeside?: string | undefined;
}

/**
 * The union of everything that names runs: both transports' lists of instances and of runs and, where there is no list of
 * runs, the instances' own documents. A failure costs only its own instance or run; a disagreement between lists is a
 * finding. Throws errors that concern the whole job, and if no list of instances is available.
 */
export async function namedRuns(
  lists: RunLists,
  only: readonly string[] | undefined,
  signal?: AbortSignal,
): Promise<NamedRuns> {
  const findings: ListFinding[] = [];
  const claims = new Map<string, Claim[]>();
  const failures: unknown[] = [];
  let answered = 0;
  let instancesMayBeCut = false;
  for (const listing of await lists.listings(signal)) {
    try {
      const entries = await lists.instances(listing, signal);
      answered++;
      if (isRoundNumber(entries.length)) instancesMayBeCut = true;
      for (const { instanceId, runIds, latestBeside } of entries) {
        const by = `the ${listing.by} list of instances`;
        const claim = { by, isList: false, names: new Set(runIds), counted: runIds, latestBeside };
        claims.set(instanceId, [...(claims.get(instanceId) ?? []), claim]);
      }
    } catch (thrown) {
      if (concernsAll(thrown)) throw thrown;
      failures.push(thrown);
    }
  }
  if (answered === 0 && failures.length > 0) throw failures[0];
  // a transport that lacks the list altogether has not failed
  const broken = failures.filter((thrown) => codeOf(thrown) !== "route_not_found");
  for (const thrown of broken) findings.push(listFailure(thrown, null, []));
  if (only === undefined) findings.push(...(await instancesDoubts(lists, signal)));

  const instances: NamedInstance[] = [];
  const unknown: string[] = [];
  const failed: string[] = [];
  for (const instanceId of new Set(only ?? claims.keys())) {
    const fault = idFault(instanceId);
    if (fault !== null) {
      failed.push(instanceId);
      findings.push(listFailure(oddId("instance", instanceId, fault), instanceId, []));
      continue;
    }
    try {
      instances.push(await namedOf(lists, instanceId, claims.get(instanceId) ?? [], findings, signal));
    } catch (thrown) {
      if (concernsAll(thrown)) throw thrown;
      if (codeOf(thrown) === "instance_not_found" && !claims.has(instanceId)) {
        unknown.push(instanceId);
        continue;
      }
      failed.push(instanceId);
      findings.push(listFailure(thrown, instanceId, []));
    }
  }
  return { instances, findings, unknown, failed, instancesFailed: broken.length > 0, instancesMayBeCut };
}

/** The runs of one instance. `named` holds what lists of instances say about it, if anything. */
async function namedOf(
  lists: RunLists,
  instanceId: string,
  named: readonly Claim[],
  findings: ListFinding[],
  signal?: AbortSignal,
): Promise<NamedInstance> {
  const listings = await lists.listings(signal);
  const turns = new Turns();
  const own = await listsOf(lists, listings, instanceId, findings, signal);
  if (own.length === 0 && named.length === 0) throw instanceNotFound(instanceId);
  const claims = [...own, ...named];
  const names = await union(
    claims.map((claim) => claim.names),
    turns,
  );

  let mayBeCut = false;
  if (own.length > 0) {
    const longest = own.reduce((a, b) => (b.names.size > a.names.size ? b : a));
    mayBeCut = isRoundNumber(longest.names.size);
    for (const claim of claims) {
      if (mayBeCut && claim !== longest && (await includes(claim.names, longest.names, turns)))
        mayBeCut = false;
    }
  }
  // an instance's own document costs a request, so it is asked for only if the lists leave something open
  if (own.length === 0 || mayBeCut) {
    const current = await currentRunOf(lists, listings, instanceId, findings, signal);
    if (current !== null && own.length > 0 && !names.has(current)) {
      const by = "the instance's own document";
      claims.push({ by, isList: false, names: new Set([current]), counted: [current] });
    }
    if (current !== null) names.add(current);
  }
  await compareClaims(instanceId, claims, findings, turns);

  const runs: NamedRun[] = [];
  // runs of a list already fetched are described without waiting, so this loop has to yield
  for (const runId of names) {
    if (turns.isDue(0)) await turns.next();
    const fault = idFault(runId);
    if (fault !== null) {
      findings.push(listFailure(oddId("run", runId, fault), instanceId, [runId]));
      continue;
    }
    try {
      const described = await lists.look({ instanceId, runId }, signal);
      runs.push({ ...described, finished: isFinished(described, claims, findings) });
      // a run with an unreadable entry in one list, described by another
      for (const { faults } of claims) {
        const fault = faults?.get(runId);
        if (fault !== undefined) findings.push(listFailure(fault, instanceId, [runId]));
      }
    } catch (thrown) {
      if (concernsAll(thrown)) throw thrown;
      findings.push(listFailure(thrown, instanceId, [runId]));
    }
  }
  const ended = new Set(runs.flatMap(({ run, finished }) => (finished ? [run.runId] : [])));
  for (const doubt of await doubtsOf(instanceId, claims, ended, turns)) findings.push(doubt);
  return { instanceId, runs, names, mayBeCut };
}

/** Doubts about lists that say they are incomplete, unless a list that does not say so names all of their runs and more. */
async function doubtsOf(
  instanceId: string | null,
  claims: readonly Claim[],
  ended: ReadonlySet<string>,
  turns: Turns,
): Promise<ListFinding[]> {
  const restOf = ({ names, rest, latestBeside }: Claim): ListRest | undefined => {
    if (rest !== undefined || latestBeside === undefined || !ended.has(latestBeside)) return rest;
    return {
      text: `its latest_run_id ${shownId(latestBeside)}, which has ended, is not in its run_ids`,
      least: names.size,
    };
  };
  const what = instanceId === null ? "instance" : "run";
  const doubts: ListFinding[] = [];
  for (const claim of claims) {
    const rest = restOf(claim);
    if (rest === undefined) continue;
    let isTold = false;
    for (const other of claims) {
      if (restOf(other) !== undefined || other.names.size < rest.least) continue;
      isTold ||= await includes(other.names, claim.names, turns);
    }
    if (isTold) continue;
    doubts.push(
      listDoubt(
        instanceId,
        [],
        `${claim.by} names ${countText(claim.names.size, what)} and may be incomplete: ${rest.text}`,
        `Have the gateway return the whole list at once, or name the missing runs as INSTANCE/RUN; if the list is complete, set \`whole: true\` for documents.${what}s in a profile.`,
      ),
    );
  }
  return doubts;
}

/** The same for the lists of instances. Failures are reported by callers that need instances. */
export async function instancesDoubts(lists: RunLists, signal?: AbortSignal): Promise<ListFinding[]> {
  const claims: Claim[] = [];
  for (const listing of await lists.listings(signal)) {
    const entries = await lists.instances(listing, signal).catch(() => {
      signal?.throwIfAborted();
      return undefined;
    });
    if (entries === undefined) continue;
    const names = new Set(entries.map(({ instanceId }) => instanceId));
    const by = `the ${listing.by} list of instances`;
    claims.push({ by, isList: true, names, counted: [], rest: entries.rest });
  }
  return await doubtsOf(null, claims, new Set(), new Turns());
}

/** An instance that no list of instances names, by its own lists; null if they do not know it either. */
export async function namedBeside(
  lists: RunLists,
  instanceId: string,
  findings: ListFinding[],
  signal?: AbortSignal,
): Promise<NamedInstance | null> {
  try {
    return await namedOf(lists, instanceId, [], findings, signal);
  } catch (thrown) {
    if (codeOf(thrown) === "instance_not_found") return null;
    throw thrown;
  }
}

/** What each list of runs says about an instance. Throws if there are lists and none answers. */
async function listsOf(
  lists: RunLists,
  listings: readonly RunListing[],
  instanceId: string,
  findings: ListFinding[],
  signal: AbortSignal | undefined,
): Promise<Claim[]> {
  const turns = new Turns();
  const failures: unknown[] = [];
  const strangers: unknown[] = [];
  const ask = async (again: boolean): Promise<Claim[]> => {
    const claims: Claim[] = [];
    for (const [index, listing] of listings.entries()) {
      const by = `the ${listing.by} list of runs`;
      try {
        if (again && index === 0) await lists.runsAgain(listing, instanceId, signal);
        const said = await lists.standings(listing, instanceId, signal);
        if (said === null) continue;
        const standings = new Map<string, RunStanding>();
        const faults = new Map<string, RunvaultError>();
        const ended: string[] = [];
        for (const [runId, standing] of said) {
          if (turns.isDue(0)) await turns.next();
          if (standing instanceof RunvaultError) faults.set(runId, standing);
          else {
            standings.set(runId, standing);
            if (standing.finished) ended.push(runId);
          }
        }
        const rest = (await lists.runs(listing, instanceId, signal))?.rest;
        claims.push({
          by,
          isList: true,
          names: new Set(said.keys()),
          counted: ended,
          standings,
          faults,
          rest,
        });
      } catch (thrown) {
        if (concernsAll(thrown)) throw thrown;
        const isStrange = codeOf(thrown) === "instance_not_found";
        // a transport that does not know the instance names none of its runs
        if (isStrange) claims.push({ by, isList: true, names: new Set(), counted: [] });
        (isStrange ? strangers : failures).push(thrown);
      }
    }
    return claims;
  };
  let claims = await ask(false);
  if (claims.length <= strangers.length && failures.length > 0) throw failures[0];
  if (claims.length <= strangers.length && strangers.length > 0) throw strangers[0];
  // a run that began or ended between two requests is no contradiction
  const same = await turns.map(claims, (claim) => isSame(claim, claims[0]!, turns));
  if (failures.length === 0 && same.includes(false)) {
    const again = await ask(true);
    if (failures.length === 0) claims = again;
  }
  for (const thrown of failures) findings.push(listFailure(thrown, instanceId, []));
  return claims;
}

async function currentRunOf(
  lists: RunLists,
  listings: readonly RunListing[],
  instanceId: string,
  findings: ListFinding[],
  signal: AbortSignal | undefined,
): Promise<string | null> {
  for (const listing of listings) {
    try {
      const current = await lists.currentRun(listing, instanceId, signal);
      if (current !== null) return current;
    } catch (thrown) {
      if (concernsAll(thrown)) throw thrown;
      findings.push(listFailure(thrown, instanceId, []));
    }
  }
  return null;
}

/**
 * A list that names everything in the others is complete as far as known, although others may be short. If each lacks
 * something that another has, runs that none names may be missing too.
 */
async function compareClaims(
  instanceId: string,
  claims: readonly Claim[],
  findings: ListFinding[],
  turns: Turns,
): Promise<void> {
  const counted = await union(
    claims.map((claim) => claim.counted),
    turns,
  );
  const lacking = await turns.map(claims, async (claim) => {
    const runIds: string[] = [];
    for (const runId of counted) {
      if (!claim.names.has(runId)) runIds.push(runId);
      if (turns.isDue(0)) await turns.next();
    }
    return { claim, runIds };
  });
  const short = lacking.filter(({ claim, runIds }) => claim.isList && runIds.length > 0);
  if (short.length === 0) return;
  const texts = short.map(({ claim, runIds }) => `${claim.by} lacks ${idsText(runIds)}`);
  const runIds = [...new Set(short.flatMap((one) => one.runIds))];
  if (lacking.some((one) => one.runIds.length === 0)) {
    findings.push(listNote(instanceId, runIds, `${texts.join("; ")}, but another list has them`));
    return;
  }
  findings.push(
    listDoubt(
      instanceId,
      runIds,
      `the gateway's lists contradict each other, so runs may be missing from all of them: ${texts.join("; ")}`,
      "Ask the gateway's operator which runs exist, and name the missing ones as INSTANCE/RUN.",
    ),
  );
}

/** Whether any list says that the run has ended; lists that disagree about it are a finding. */
function isFinished(
  { run: { instanceId, runId }, standing }: DescribedRun,
  claims: readonly Claim[],
  findings: ListFinding[],
): boolean {
  const said = claims.flatMap(({ by, standings }) => {
    const own = standings?.get(runId);
    return own === undefined ? [] : [{ by, finished: own.finished }];
  });
  const ended = said.filter(({ finished }) => finished);
  if (ended.length === 0) return standing.finished;
  if (ended.length < said.length) {
    const words = said.map(({ by, finished }) => `${by} says it ${finished ? "has ended" : "is running"}`);
    findings.push(
      listDoubt(
        instanceId,
        [runId],
        `the gateway's lists disagree on whether the run has ended: ${words.join(", ")}`,
        "Run the same command again once the gateway's transports agree.",
      ),
    );
  }
  return true;
}

async function isSame(one: Claim, other: Claim, turns: Turns): Promise<boolean> {
  if (one === other) return true;
  const counted = await union([one.counted], turns);
  const otherCounted = await union([other.counted], turns);
  return (
    one.names.size === other.names.size &&
    counted.size === otherCounted.size &&
    (await includes(one.names, other.names, turns)) &&
    (await includes(counted, otherCounted, turns))
  );
}

async function includes(all: ReadonlySet<string>, some: ReadonlySet<string>, turns: Turns): Promise<boolean> {
  if (some.size > all.size) return false;
  for (const one of some) {
    if (!all.has(one)) return false;
    if (turns.isDue(0)) await turns.next();
  }
  return true;
}

async function union(parts: readonly Iterable<string>[], turns: Turns): Promise<Set<string>> {
  const all = new Set<string>();
  for (const part of parts) {
    for (const one of part) {
      all.add(one);
      if (turns.isDue(0)) await turns.next();
    }
  }
  return all;
}

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof RunvaultError ? thrown.code : undefined;
}

/** An id in a list that cannot be archived; the list's other entries can. */
function oddId(what: "run" | "instance", id: string, fault: string): RunvaultError {
  return new RunvaultError("refused", `the gateway lists the ${what} ${shownId(id)}, which ${fault}`, {
    scope: what,
    hint: "It was left out. Ask the gateway's operator to give it an id of plain characters.",
  });
}

/** Whether an error would affect every other request, unlike one instance's invalid list. */
export function concernsAll(thrown: unknown): boolean {
  const { scope, code } = RunvaultError.from(thrown);
  return (scope === "job" && code !== "not_a_gateway") || code === "internal";
}
