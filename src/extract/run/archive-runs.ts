import { type Archive, openArchive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import { exampleSetAside, type SetAside } from "../../archive/read/set-aside.ts";
import { rememberSource } from "../../archive/sources.ts";
import type { Step } from "../../archive/write/run-journal.ts";
import type { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { RunvaultError } from "../../model/error.ts";
import { extraTypes, keptInSegments } from "../../model/profile/extra-column.ts";
import type { TableName } from "../../model/profile/table.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import type { RunRef } from "../../model/source.ts";
import { durationText } from "../../model/text/duration-text.ts";
import type { ChosenRuns, RunChoosing } from "../choose/choose-runs.ts";
import { type ListFinding, listNote } from "../choose/list-finding.ts";
import type { RunLists } from "../choose/run-lists.ts";
import { SeenSource } from "../proof/seen-source.ts";
import type { RunWatcher } from "../run-watcher.ts";
import { inFlight } from "../together/in-flight.ts";
import { SharedUse } from "../together/shared-use.ts";
import { type JobsMeans, meansOfMany, meansOfOne, type PlaceAmongJobs } from "../together/side-by-side.ts";
import {
  type ArchiveJob,
  type ArchiveSettings,
  archiveRun,
  defaultSettings,
  type RunOutcome,
} from "./archive-run.ts";
import { archiveWidening } from "./archive-widening.ts";
import type { Budget, BudgetedRun } from "./budget.ts";
import { addExtraColumns, tablesWithExtra } from "./extra-columns.ts";

/** One run's result: its manifest, or the error that ended it. */
export interface ArchivedRun extends RunRef {
  readonly outcome: RunOutcome | null;
  readonly seconds: number;
  /** Requests repeated for this run, by the job and by the gateway's client. */
  readonly retries: number;
  readonly error: RunvaultError | null;
  /** By table, an example of the rows set aside, with the reason. */
  readonly setAside: Readonly<Partial<Record<string, SetAside>>>;
  /** The folder of all of them. */
  readonly quarantineDir: string | null;
}

export type ArchiveEvent =
  | { readonly kind: "run"; readonly run: ArchivedRun }
  /** Findings about a run's description, reported after the run. */
  | { readonly kind: "findings"; readonly findings: readonly ListFinding[] }
  /** A failure unrelated to any run; the runs go on. */
  | { readonly kind: "error"; readonly error: RunvaultError };

/** How to archive runs. */
export interface ArchiveRunsJob
  extends Pick<RunChoosing, "folder" | "scratch" | "target" | "finishedStatus" | "types">,
    Pick<ArchiveJob, "clock" | "retry" | "wait" | "tool" | "signal" | "windDown"> {
  readonly budget: Budget;
  /** Converts the rows of all runs. */
  readonly duckdb: JobDuckDB;
  readonly settings: Partial<ArchiveSettings>;
  /** Default: all tables. */
  readonly tables?: readonly TableName[] | undefined;
  /** Whether to widen columns that are too narrow for values. Default: only in an archive that this job creates. */
  readonly widen?: boolean | undefined;
  /** Tables that the operator says are empty. */
  readonly empty: readonly TableName[];
  readonly step: Step;
  readonly watcher: RunWatcher;
  /** How many runs are fetched at a time. Default: 1. */
  readonly parallelRuns?: number | undefined;
  /** The longest time for fetching one run, in milliseconds, after which it is left for the next job. Default: no limit. */
  readonly perRunMs?: number | undefined;
}

/** Steps after which some of a job's work is kept, however it ends. */
const keepingSteps: ReadonlySet<string> = new Set([
  "segment-journalled",
  "survey-journalled",
  "window-compared",
  "parquet-journalled",
]);

/** The most runs in progress: the small ones wait for each other and are converted together. */
const mostUnderWay = 64;
/** The most runs that wait for one list to show whether they have changed. */
const runsPerList = 48;
/** How many milliseconds a group waits for more: while runs still begin, and once none does. */
const pauses = { converting: 500, describing: 2_000, atTheEnd: 25 };

/**
 * Archives the chosen runs, several at a time and begun in order, and yields each once it is done. A run that fails does
 * not stop the others, unless the job as a whole cannot go on. Returns the runs that were not tried.
 */
export async function* archiveRuns(
  { archive: found, known, lists, runs }: ChosenRuns,
  job: ArchiveRunsJob,
): AsyncGenerator<ArchiveEvent, readonly RunRef[]> {
  const { budget, signal, duckdb, parallelRuns = 1 } = job;
  let isLast = false;
  const pauseMs = (usual: number) => () => (isLast ? pauses.atTheEnd : usual);
  const settings = { ...defaultSettings, ...job.settings };
  const isAlone = runs.length === 1 || parallelRuns === 1;
  const means = isAlone
    ? meansOfOne(duckdb, settings)
    : meansOfMany(duckdb, settings, pauseMs(pauses.converting), signal);
  const describing = isAlone
    ? null
    : lists.describeAgainTogether(runsPerList, pauseMs(pauses.describing), signal);
  const shared: SharedByRuns = {
    ...{ archiveFor: archiveMaker(found, lists, job), lists, means },
    seen: new SeenSource(known ?? undefined, job.empty),
    // nobody relies yet on the types of an archive that this job creates
    widens: job.widen ?? found === null,
    widening: new SharedUse(),
    isAlone,
  };
  let isEnded = false;
  const archiving = inFlight(
    runs,
    { lanes: parallelRuns, alive: isAlone ? 1 : mostUnderWay },
    async (run, index, flight) => {
      job.watcher.run?.(run, index + 1, runs.length, isAlone);
      const archived = await archiveOne(run, { order: index, ...flight }, job, shared);
      if (archived.run.error?.scope === "job") isEnded = true;
      job.watcher.ended?.();
      return archived;
    },
    () => !isEnded && !budget.signal.aborted && job.windDown?.aborted !== true,
    (is) => {
      isLast = is;
      if (!is) return;
      means.hurry();
      describing?.hurry();
    },
  );
  /** Whether remembering the source's words was tried. */
  let hasWords = false;
  let begun: number;
  try {
    let next = await archiving.next();
    for (; !next.done; next = await archiving.next()) {
      const { item, result } = next.value;
      const { run, archive } = result;
      for (const error of result.errors) yield { kind: "error", error };
      yield { kind: "run", run };
      // only for a source that has answered properly
      if (run.outcome !== null && archive !== null && !hasWords) {
        hasWords = true;
        const error = await rememberWords(archive, job);
        if (error !== null) yield { kind: "error", error };
      }
      if (job.target.kind === "runs" && run.error === null)
        yield { kind: "findings", findings: await remarkOn(item, lists, signal) };
    }
    begun = next.value;
  } finally {
    // nothing keeps running when the caller stops listening
    await archiving.return(0);
  }
  const notTried = runs.slice(begun);
  if (notTried.length > 0 && budget.signal.aborted && !isEnded) {
    yield { kind: "error", error: RunvaultError.from(budget.signal.reason) };
  }
  return notTried;
}

/** Shared by the runs of a job. */
interface SharedByRuns {
  readonly archiveFor: (run: RunRef) => Promise<Archive>;
  readonly lists: RunLists;
  readonly seen: SeenSource;
  readonly means: JobsMeans;
  readonly widens: boolean;
  /** A column is widened in all runs at once, while none is in progress. */
  readonly widening: SharedUse;
  readonly isAlone: boolean;
}

/** A finished run, with failures unrelated to it. */
interface DoneRun {
  readonly run: ArchivedRun;
  readonly archive: Archive | null;
  readonly errors: readonly RunvaultError[];
}

/** Opens the archive, or creates it for the first run that the gateway knows: a misspelt name leaves nothing behind. */
function archiveMaker(found: Archive | null, lists: RunLists, job: ArchiveRunsJob) {
  const { folder, scratch, types = {}, step, signal } = job;
  const names = tablesWithExtra(job.budget.gateway, job.tables);
  const withExtra = async (archive: Archive) => {
    for (const name of await addExtraColumns(archive, names, step, signal)) {
      job.watcher.note?.(keptInSegments(name));
    }
    return archive;
  };
  let made: Promise<Archive> | undefined;
  /** Failures are not kept: the next run tries again. */
  const make = (archive: Promise<Archive>) => {
    made = archive.catch((thrown) => {
      made = undefined;
      throw thrown;
    });
    return made;
  };
  return async (run: RunRef) => {
    if (made !== undefined) return await made;
    if (found !== null) return await make(withExtra(found));
    await lists.describe(run, signal);
    const exactTypes = Object.fromEntries([
      ...Object.entries(types),
      ...names.map((name) => [name, { ...types[name], ...extraTypes }] as const),
    ]);
    // another run may have created it meanwhile
    return await (made ?? make(openArchive(folder, { create: true, exactTypes, scratch, step })));
  };
}

async function archiveOne(
  run: RunRef,
  place: Omit<PlaceAmongJobs, "means">,
  job: ArchiveRunsJob,
  shared: SharedByRuns,
): Promise<DoneRun> {
  const startedMs = performance.now();
  const seconds = () => Math.round(performance.now() - startedMs) / 1000;
  const { gateway } = job.budget;
  const budgeted = job.budget.begin();
  const retriesBefore = gateway.retriesOf(run);
  const clientRetries = () => gateway.retriesOf(run) - retriesBefore;
  const { instanceId, runId } = run;
  const errors: RunvaultError[] = [];
  let archive: Archive | null = null;
  try {
    archive = await shared.archiveFor(run);
    const outcome = await archiveInto(archive, { instanceId, runId }, place, budgeted, job, shared, errors);
    return {
      ...{ archive, errors },
      run: {
        ...{ instanceId, runId, outcome, seconds: seconds() },
        // an unchanged run's manifest counts the retries of the job that made it
        retries: clientRetries() + (outcome.changed ? outcome.manifest.retries : 0),
        error: null,
        setAside: await setAsideOf(archive, outcome.manifest),
        quarantineDir: archive.layout.quarantineDir(run),
      },
    };
  } catch (thrown) {
    const error = budgeted.explain(RunvaultError.from(thrown).at({ instance: instanceId, run: runId }));
    return {
      ...{ archive, errors },
      run: {
        ...{ instanceId, runId, outcome: null, seconds: seconds() },
        ...{ retries: clientRetries(), error, setAside: {}, quarantineDir: null },
      },
    };
  }
}

async function archiveInto(
  archive: Archive,
  run: RunRef,
  place: Omit<PlaceAmongJobs, "means">,
  budgeted: BudgetedRun,
  job: ArchiveRunsJob,
  { lists, seen, means, widens, widening, isAlone }: SharedByRuns,
  errors: RunvaultError[],
): Promise<RunOutcome> {
  const { budget, settings, tables, clock, retry, wait, tool, signal, duckdb, watcher } = job;
  using limit = timeLimit(job.perRunMs);
  const windDown = anyOf(job.windDown, limit.signal);
  const expected = new Map<string, number>();
  const step: Step = (name) => {
    if (keepingSteps.has(name)) budgeted.keep();
    job.step(name);
  };
  const one: ArchiveJob & { readonly step: Step } = {
    ...{
      source: budget.gateway,
      archive,
      run,
      settings,
      lists,
      seen,
      step,
      clock,
      retry,
      tool,
      signal,
      windDown,
      duckdb,
      among: { ...place, means },
    },
    ...(tables === undefined ? {} : { tables }),
    // a named run is always checked
    isManifestEnough: job.target.kind === "finished",
    ...(wait === undefined ? {} : { wait }),
    onPlan: (table, rows) => {
      // with several at a time it is unknown whose rows these are
      if (rows === undefined || !isAlone) return;
      expected.set(table.name, rows);
      watcher.expect?.([...expected.values()].reduce((sum, count) => sum + count, 0));
    },
    onRows: (_table, rows, bytes) => watcher.rows?.(rows, bytes),
    onConversion: (change) => watcher.conversion?.(change),
    onNote: (text) => watcher.log?.(run, text),
  };
  if (!widens) return await archiveRun(one);
  return await archiveWidening(one, widening, {
    note: (text) => watcher.note?.(text),
    failed: (error) => errors.push(error),
  });
}

/** Winds one run down once its time is over. */
function timeLimit(ms: number | undefined): Disposable & { readonly signal: AbortSignal | undefined } {
  if (ms === undefined) return { signal: undefined, [Symbol.dispose]: () => {} };
  const controller = new AbortController();
  const over = () =>
    controller.abort(
      new RunvaultError("incomplete", `the run was not fetched within ${durationText(ms)}`, {
        scope: "run",
        hint: "What was fetched is kept, and the next job continues from there. Raise per_run to give it more time.",
      }),
    );
  const timer = setTimeout(over, timerMs(ms));
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}

function anyOf(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one === undefined || other === undefined ? (one ?? other) : AbortSignal.any([one, other]);
}

/** An example of the rows set aside, for each table that has any. */
async function setAsideOf(archive: Archive, manifest: Manifest): Promise<ArchivedRun["setAside"]> {
  const examples: Record<string, SetAside> = {};
  for (const [name, table] of Object.entries(manifest.tables)) {
    const example = await exampleSetAside(archive, manifest, toldView(table).quarantine);
    if (example !== null) examples[name] = example;
  }
  return examples;
}

/** Anything odd about the description of a named run; nothing if its source no longer knows it. */
async function remarkOn(run: RunRef, lists: RunLists, signal: AbortSignal): Promise<ListFinding[]> {
  const note = (text: string) => [listNote(run.instanceId, [run.runId], `${run.runId}: ${text}`)];
  try {
    const { remark } = (await lists.look(run, signal)).standing;
    return remark === null ? [] : note(remark);
  } catch (thrown) {
    // the run is archived: an error that stops the command is reported with the next one
    if (signal.aborted) return [];
    const { code, message } = RunvaultError.from(thrown);
    if (code === "run_not_found" || code === "instance_not_found") return [];
    // the run's own job used the earlier list
    return note(`could not be looked up in the run list again: ${message}`);
  }
}

/** Remembers the source's own words for a run that has ended, if given. A failure does not affect the runs. */
async function rememberWords(
  archive: Archive,
  { budget, finishedStatus }: ArchiveRunsJob,
): Promise<RunvaultError | null> {
  if (finishedStatus === undefined) return null;
  try {
    await rememberSource(archive, budget.gateway.label, (known) => ({
      ...known,
      finishedStatus: [...finishedStatus],
    }));
    return null;
  } catch (error) {
    return RunvaultError.from(error);
  }
}
