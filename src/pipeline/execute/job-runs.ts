import { basename, dirname } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import { lockHolder } from "../../archive/lock.ts";
import { acceptanceOf, isAmiss } from "../../archive/manifest/acceptance.ts";
import {
  type Manifest,
  runState,
  type TableManifest,
  type TableState,
} from "../../archive/manifest/manifest.ts";
import { committedBytes } from "../../archive/manifest/manifest-files.ts";
import { knownSource } from "../../archive/sources.ts";
import { finishedRuns } from "../../extract/choose/finished-runs.ts";
import { firstOfMany } from "../../extract/choose/first-of-many.ts";
import { latestListed } from "../../extract/choose/latest-listed.ts";
import { type ListFinding, listFailure } from "../../extract/choose/list-finding.ts";
import { concernsAll, instancesDoubts } from "../../extract/choose/named-runs.ts";
import type { RunLists } from "../../extract/choose/run-lists.ts";
import { heldStanding } from "../../extract/run/held-standing.ts";
import type { RunDescription } from "../../extract/run/run-description.ts";
import type { WantedProof } from "../../extract/run/run-horizon.ts";
import { readAddress } from "../../gateway/address.ts";
import { RunvaultError } from "../../model/error.ts";
import { type Table, type TableName, tables } from "../../model/profile/table.ts";
import { isLatest, parseInstance } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, parseTime } from "../../model/time.ts";
import { Turns } from "../../model/turns.ts";
import type { Job } from "../file/job-schema.ts";
import type { RunPlan } from "../record/job-record.ts";
import { attemptError } from "./attempt-error.ts";

/** The archived state of a run, as far as a job needs it. */
export interface HeldRun {
  readonly generation: number;
  /** The worst state among the job's tables, and the state of each. */
  readonly state: TableState;
  readonly tables: Readonly<Partial<Record<string, TableState>>>;
  /** Whether the latest attempt at one of them failed and nobody accepted that. */
  readonly isBehind: boolean;
  /** Whether it is finished: COMPLETE, apart from accepted tables. */
  readonly isSettled: boolean;
  readonly bytes: number;
  /** Tables whose latest attempt proved nothing, with the reasons. */
  readonly unproven: readonly HeldUnproven[];
  /** Whether the run was still growing when it was archived; then more rows follow. */
  readonly isOpen: boolean;
  /** Proven rows by table. */
  readonly rows: Readonly<Partial<Record<string, number>>>;
}

export interface HeldUnproven {
  readonly table: TableName;
  readonly state: TableState;
  /** Whether the operator accepted it. */
  readonly accepted: boolean;
  readonly error: RunvaultError | null;
}

/** A run that a job works on, or leaves as it is. */
export interface JobRun extends RunRef {
  readonly plan: RunPlan;
  /** Null if the gateway no longer lists it. */
  readonly listed: RunDescription | null;
  /** Null if it is not in the archive. */
  readonly held: HeldRun | null;
  /** When the gateway forgets it; null if unknown, or if it is still growing. */
  readonly expires: Nanoseconds | null;
}

/** A job's runs, and what to do. */
export interface JobRuns {
  /** All runs, also those without work. */
  readonly all: readonly JobRun[];
  /** Runs with work, in order. */
  readonly work: readonly JobRun[];
  readonly findings: readonly ListFinding[];
  /** Instances with work that are not in the archive yet. */
  readonly begun: readonly string[];
  /** The run that INSTANCE/latest of the job file is; null where the file has no such words. */
  readonly latest: RunRef | null;
}

export interface ChooseJobRuns {
  readonly job: Job;
  readonly lists: RunLists;
  /** Null if there is none yet. */
  readonly archive: Archive | null;
  /** The gateway's address, as manifests have it. */
  readonly source: string;
  readonly now: Nanoseconds;
  readonly asked: WantedProof;
  /** When a run without a version was last asked about, apart from its manifest; null if unknown. */
  readonly lastAsked: (run: RunRef) => Nanoseconds | null;
  /** Whether the previous execution failed with a run. */
  readonly failedBefore: (run: RunRef) => boolean;
  /** Runs that the previous execution worked on without committing anything. */
  readonly leftBefore: readonly RunRef[];
  /** Runs that ended up to this were removed for lack of space. */
  readonly removedUpTo: string | null;
  readonly signal: AbortSignal;
}

/**
 * Chooses a job's runs by its file, the gateway's lists and the archive's manifests, without other requests; writes
 * nothing. Throws if no list is available.
 */
export async function chooseJobRuns(input: ChooseJobRuns): Promise<JobRuns> {
  const { job, archive, source } = input;
  const addresses = await addressesOf(job, archive, source);
  const held = await HeldFiles.list(archive);
  const { run: one } = job;
  const latest =
    one === undefined || !isLatest(one)
      ? null
      : await latestListed(input.lists, one.instanceId, input.signal);
  const { runs, findings } =
    one === undefined
      ? await byPatterns(job.runs!, addresses, held, input)
      : await oneRun(latest ?? one, addresses, held, input);
  const wanted = wantedTables(job);
  const all: JobRun[] = [];
  const turns = new Turns();
  for (const { run, listed } of runs) {
    if (turns.isDue(0)) await turns.next();
    try {
      const manifest = archive !== null && held.has(run) ? await archive.manifest(run) : null;
      const planned = await planOf(run, listed, manifest, wanted, input);
      if (planned !== null) all.push(planned);
    } catch (thrown) {
      // a damaged manifest affects only its own run
      const error = RunvaultError.from(thrown);
      if (error.scope === "job") throw error;
      findings.push(listFailure(error, run.instanceId, [run.runId]));
    }
  }
  const work = inOrder(all, input);
  const begun = new Set(work.map(({ instanceId }) => instanceId).filter((id) => !held.hasAnyOf(id)));
  return { all, work, findings: firstOfMany(findings), begun: [...begun], latest };
}

/** The job's tables. */
export function wantedTables({ tables: named }: Pick<Job, "tables">): readonly Table[] {
  return named === "all" ? tables : tables.filter(({ name }) => named.includes(name));
}

/** All addresses of the gateway, by the archive and by the file. */
export async function addressesOf(
  { gateway }: Pick<Job, "gateway">,
  archive: Archive | null,
  source: string,
): Promise<ReadonlySet<string>> {
  const known = archive === null ? [] : (await knownSource(archive, source)).addresses;
  return new Set([source, ...known, ...aliasesOf(gateway)]);
}

/** Other addresses of a gateway in its job file, in the form that manifests use. */
export function aliasesOf({ source_alias }: Pick<Job["gateway"], "source_alias">): readonly string[] {
  return source_alias.map((address) => readAddress(address).label);
}

interface Chosen {
  readonly run: RunRef;
  readonly listed: RunDescription | null;
}

interface Chosens {
  readonly runs: readonly Chosen[];
  readonly findings: ListFinding[];
}

async function byPatterns(
  rules: NonNullable<Job["runs"]>,
  addresses: ReadonlySet<string>,
  held: HeldFiles,
  { lists, archive, now, job, leftBefore, removedUpTo, signal }: ChooseJobRuns,
): Promise<Chosens> {
  // runs beyond the retention would be removed again as soon as they arrive
  const { runs: kept } = job.keep;
  const within = [rules.ended_within, kept].flatMap((one) => (one === undefined ? [] : [one.ns]));
  const oldest = within.reduce((latest, ns) => (now - ns > latest ? now - ns : latest), -(1n << 63n));
  const removed = job.keep.disk === undefined || removedUpTo === null ? null : parseTime(removedUpTo);
  const findings: ListFinding[] = [];
  const isTaken = (instanceId: string) => rules.instances.some((one) => one.matches(instanceId));
  const isExcluded = (run: RunRef) =>
    rules.exclude.some((one) => one.instance.matches(run.instanceId) && one.run.matches(run.runId));
  const asked = new Set(
    rules.instances.flatMap(({ isExact, pattern }) => (isExact ? [parseInstance(pattern)] : [])),
  );
  for (const listing of await lists.listings(signal)) {
    try {
      for (const { instanceId } of await lists.instances(listing, signal)) {
        if (isTaken(instanceId)) asked.add(instanceId);
      }
    } catch (thrown) {
      // reported, or thrown, where the lists are compared
      if (concernsAll(thrown)) throw thrown;
    }
  }
  // patterns are matched against these lists
  if (rules.instances.some(({ isExact }) => !isExact))
    findings.push(...(await instancesDoubts(lists, signal)));
  const only: string[] = [];
  const left = leftBefore.map(({ instanceId }) => instanceId);
  for (const instanceId of new Set([...asked, ...[...held.instances(), ...left].filter(isTaken)])) {
    const of = await held.sourceOf(instanceId, addresses, findings);
    if (of === "other" && asked.has(instanceId))
      findings.push(listFailure(await foreignInstance(instanceId, held), instanceId, []));
    // a run from another gateway that this one does not list is not the job's
    if (of !== "other") only.push(instanceId);
  }
  const there = archive === null ? null : { archive, addresses: [...addresses] };
  const found = await finishedRuns(lists, only, there, signal);
  // a gateway continually forgets archived runs
  findings.push(...found.findings.filter(({ lasts }) => lasts !== true));

  const runs: Chosen[] = [];
  /** Manifests of runs that the gateway lists. */
  const named = new Set<string>();
  for (const { runs: ofInstance } of found.instances) {
    for (const { run: listed, standing, finished } of ofInstance) {
      const { instanceId, runId } = listed;
      held.addFile(named, listed);
      if (isExcluded(listed) || (standing.unknown && !finished)) continue;
      const status = !finished ? "growing" : listed.status.toUpperCase() === "FAILED" ? "failed" : "finished";
      if (!rules.status.includes(status)) continue;
      const ended = listed.ended ?? now;
      const isOld =
        finished && (ended < oldest || (removed !== null && ended <= removed && !held.has(listed)));
      const run = { instanceId, runId };
      if (isOld && !(await isUnproven(run, archive, held, wantedTables(job)))) continue;
      runs.push({ run, listed });
    }
  }
  // runs that the gateway no longer lists; unknown if a list failed or may be cut
  const isDoubtful = (instanceId: string) =>
    found.findings.some((one) => one.error !== null && (one.instanceId ?? instanceId) === instanceId);
  for (const instanceId of only.filter((one) => !isDoubtful(one))) {
    const unheld = leftBefore.filter(
      (run) => run.instanceId === instanceId && !held.has(run) && !held.isIn(named, run),
    );
    for (const run of [...(await held.runsBeside(named, instanceId, addresses, findings)), ...unheld]) {
      if (!isExcluded(run)) runs.push({ run, listed: null });
    }
  }
  return { runs, findings };
}

async function oneRun(
  run: RunRef,
  addresses: ReadonlySet<string>,
  held: HeldFiles,
  { lists, signal }: ChooseJobRuns,
): Promise<Chosens> {
  const findings: ListFinding[] = [];
  const { instanceId, runId } = run;
  if ((await held.sourceOf(instanceId, addresses, findings)) === "other")
    throw await foreignInstance(instanceId, held);
  try {
    const { run: listed } = await lists.look(run, signal);
    return { runs: [{ run: { instanceId, runId }, listed }], findings };
  } catch (thrown) {
    const { code } = RunvaultError.from(thrown);
    if ((code !== "run_not_found" && code !== "instance_not_found") || !held.has(run)) throw thrown;
    return { runs: [{ run: { instanceId, runId }, listed: null }], findings };
  }
}

async function isUnproven(
  run: RunRef,
  archive: Archive | null,
  held: HeldFiles,
  wanted: readonly Table[],
): Promise<boolean> {
  if (archive === null || !held.has(run)) return false;
  const manifest = await archive.manifest(run);
  return manifest !== null && !heldOf(manifest, wanted).isSettled;
}

/** Instances with the same name at two gateways would be mixed up. */
async function foreignInstance(instanceId: string, held: HeldFiles): Promise<RunvaultError> {
  return instanceOfOther(instanceId, await held.anySource(instanceId));
}

/** Why an instance cannot be archived: its runs in the archive, or pending ones, came from another gateway. */
export function instanceOfOther(instanceId: string, from: string | null): RunvaultError {
  return new RunvaultError(
    "history_identity_conflict",
    `the archive holds runs of this instance from another gateway, ${from}`,
    {
      scope: "instance",
      place: { instance: instanceId },
      hint: `If it is the same gateway at another address, add it to gateway.source_alias: [${from}]; else archive this one into another archive.`,
    },
  );
}

/** The archived state of a run's wanted tables. */
export function heldOf(manifest: Manifest, wanted: readonly Table[]): HeldRun {
  const own = wanted.flatMap(({ name }) => {
    const table = manifest.tables[name];
    return table === undefined ? [] : [[name, table] as const];
  });
  return {
    generation: manifest.generation,
    state: runState(own.map(([, { state }]) => state)),
    tables: Object.fromEntries(own.map(([name, { state }]) => [name, state])),
    isSettled: isSettled(own.map(([, table]) => table)),
    isBehind: own.some(([, table]) => isAmiss(table)),
    bytes: committedBytes(manifest),
    unproven: own.flatMap(([name, table]) =>
      table.attempt.outcome === "ok"
        ? []
        : [
            {
              table: name,
              state: table.state,
              accepted: acceptanceOf(table) !== null,
              error: attemptError(table),
            },
          ],
    ),
    isOpen: !manifest.run.final,
    rows: Object.fromEntries(own.map(([name, { proven }]) => [name, proven?.certificate?.rows ?? 0])),
  };
}

function isSettled(own: readonly TableManifest[]): boolean {
  const open = own.filter((table) => acceptanceOf(table) === null);
  return open.length < own.length
    ? open.every(({ state }) => state === "COMPLETE" || state === "ABSENT")
    : runState(own.map(({ state }) => state)) === "COMPLETE";
}

async function planOf(
  run: RunRef,
  listed: RunDescription | null,
  manifest: Manifest | null,
  wanted: readonly Table[],
  input: ChooseJobRuns,
): Promise<JobRun | null> {
  const { archive, job, now, asked, lastAsked } = input;
  const held = manifest === null ? null : heldOf(manifest, wanted);
  const common = { ...run, listed, held };
  if (listed === null) {
    // never committed, or removed meanwhile
    if (held === null) return isLeft(run, input) ? { ...common, expires: null, plan: "gone" } : null;
    return { ...common, expires: null, plan: held.isSettled ? "unchanged" : "gone" };
  }
  const { keeps } = job.gateway;
  const expires = keeps === undefined || listed.ended === undefined ? null : listed.ended + keeps.ns;
  const told = { ...common, expires };
  if (manifest !== null && archive !== null) {
    const standing = await heldStanding(archive, manifest, listed, wanted, asked);
    if (standing === "current") return { ...told, plan: "unchanged" };
    const last = lastAsked(run) ?? checkedAt(manifest, wanted);
    if (standing === "unvouched" && last !== null && last > now - job.recheck.ns)
      return { ...told, plan: "unchanged" };
  }
  if (archive !== null && (await isHeldByOther(archive, run))) return { ...told, plan: "held" };
  if (isExpiring(told, job, now)) return { ...told, plan: "expiring" };
  if (!listed.final) return { ...told, plan: "growing" };
  return { ...told, plan: held === null ? "new" : "changed" };
}

function isLeft({ instanceId, runId }: RunRef, { leftBefore }: ChooseJobRuns): boolean {
  return leftBefore.some((run) => run.instanceId === instanceId && run.runId === runId);
}

/** Whether a run must be proven now, because the gateway will soon forget it. */
export function isExpiring(
  { expires }: Pick<JobRun, "expires">,
  { gateway: { keeps } }: Pick<Job, "gateway">,
  now: Nanoseconds,
): boolean {
  return expires !== null && keeps !== undefined && expires - now <= keeps.ns / 4n;
}

/** When the wanted tables were last compared with the source, the oldest of these times. */
function checkedAt(manifest: Manifest, wanted: readonly Table[]): Nanoseconds | null {
  const times = wanted.flatMap(({ name }) => {
    const table = manifest.tables[name];
    return table === undefined ? [] : [parseTime(table.proven?.certificate?.checkedAt ?? table.attempt.at)];
  });
  return times.length === 0 ? null : times.reduce((a, b) => (a < b ? a : b));
}

async function isHeldByOther({ layout }: Archive, run: RunRef): Promise<boolean> {
  try {
    return (await lockHolder(layout, layout.lockFile(run))) !== null;
  } catch {
    // taking the lock reports what is wrong with it
    return false;
  }
}

/**
 * In order: runs about to expire, new ones by their end, changed ones, growing ones, those that failed last time, those
 * held by another process, and those that the gateway forgot.
 */
function inOrder(all: readonly JobRun[], { failedBefore }: ChooseJobRuns): readonly JobRun[] {
  const rankOf = (run: JobRun): number => {
    switch (run.plan) {
      case "expiring":
        return 0;
      case "held":
        return 5;
      case "gone":
        return 6;
      default:
        if (run.held?.isBehind === true || failedBefore(run)) return 4;
        return run.plan === "new" ? 1 : run.plan === "changed" ? 2 : 3;
    }
  };
  const timeOf = ({ plan, expires, listed }: JobRun): bigint =>
    (plan === "expiring" ? expires : (listed?.ended ?? listed?.started)) ?? 0n;
  return all
    .filter(({ plan }) => plan !== "unchanged")
    .map((run) => ({ run, rank: rankOf(run), time: timeOf(run) }))
    .sort((a, b) => a.rank - b.rank || (a.time < b.time ? -1 : a.time > b.time ? 1 : 0))
    .map(({ run }) => run);
}

/** Number of runs by plan. */
export function countPlans({ all }: Pick<JobRuns, "all">): Partial<Record<RunPlan, number>> {
  const counts: Partial<Record<RunPlan, number>> = {};
  for (const { plan } of all) counts[plan] = (counts[plan] ?? 0) + 1;
  return counts;
}

/** A run as the key of a map. */
export function keyOf({ instanceId, runId }: RunRef): string {
  return JSON.stringify([instanceId, runId]);
}

/** An archive's manifests by instance folder, read only when needed. */
class HeldFiles {
  readonly #archive: Archive | null;
  readonly #folders: ReadonlyMap<string, readonly string[]>;
  readonly #files: ReadonlySet<string>;

  private constructor(archive: Archive | null, files: readonly string[]) {
    this.#archive = archive;
    this.#files = new Set(files);
    this.#folders = Map.groupBy(files, (file) => basename(dirname(file)));
  }

  static async list(archive: Archive | null): Promise<HeldFiles> {
    return new HeldFiles(archive, (await archive?.manifestFiles()) ?? []);
  }

  has(run: RunRef): boolean {
    return this.#archive !== null && this.#files.has(this.#archive.layout.manifestFile(run));
  }

  /** Whether the archive has anything of an instance. */
  hasAnyOf(instanceId: string): boolean {
    const folder = this.#archive?.layout.instanceFolder(instanceId);
    return folder !== undefined && this.#folders.has(folder);
  }

  /** Whether a run's manifest is among these files. */
  isIn(files: ReadonlySet<string>, run: RunRef): boolean {
    return this.#archive !== null && files.has(this.#archive.layout.manifestFile(run));
  }

  /** Instances whose names follow from their folders. */
  instances(): readonly string[] {
    const names = [...this.#folders.keys()].map((folder) => this.#archive?.layout.idOf(folder) ?? null);
    return names.filter((name) => name !== null);
  }

  /** Whether an instance's archived runs came from these addresses, or all from others; null if there are none. */
  async sourceOf(
    instanceId: string,
    addresses: ReadonlySet<string>,
    findings: ListFinding[],
  ): Promise<"own" | "other" | null> {
    let isAny = false;
    for await (const { source } of this.#manifests(instanceId, findings)) {
      if (addresses.has(source)) return "own";
      isAny = true;
    }
    return isAny ? "other" : null;
  }

  /** An address that runs of an instance came from. */
  async anySource(instanceId: string): Promise<string | null> {
    for await (const { source } of this.#manifests(instanceId, [])) return source;
    return null;
  }

  /** Adds the file of a run's manifest to the set. */
  addFile(files: Set<string>, run: RunRef): void {
    if (this.#archive !== null) files.add(this.#archive.layout.manifestFile(run));
  }

  /** Runs of an instance from these addresses whose manifests are not in these files. */
  async runsBeside(
    files: ReadonlySet<string>,
    instanceId: string,
    addresses: ReadonlySet<string>,
    findings: ListFinding[],
  ): Promise<readonly RunRef[]> {
    const runs: RunRef[] = [];
    for await (const { instanceId: own, runId, source } of this.#manifests(instanceId, findings, files)) {
      if (own === instanceId && addresses.has(source)) runs.push({ instanceId, runId });
    }
    return runs;
  }

  async *#manifests(
    instanceId: string,
    findings: ListFinding[],
    beside: ReadonlySet<string> = new Set(),
  ): AsyncGenerator<Manifest> {
    const archive = this.#archive;
    if (archive === null) return;
    for (const file of this.#folders.get(archive.layout.instanceFolder(instanceId)) ?? []) {
      if (beside.has(file)) continue;
      try {
        const manifest = await archive.manifestIn(file);
        if (manifest !== null) yield manifest;
      } catch (thrown) {
        const error = RunvaultError.from(thrown);
        if (error.scope === "job") throw error;
        if (!findings.some((known) => known.error?.message === error.message))
          findings.push(listFailure(error, instanceId, []));
      }
    }
  }
}
