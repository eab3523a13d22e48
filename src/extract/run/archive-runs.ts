import { type Archive, openArchive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import { exampleSetAside, type SetAside } from "../../archive/read/set-aside.ts";
import { rememberSource } from "../../archive/sources.ts";
import type { Step } from "../../archive/write/run-journal.ts";
import type { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { ChosenRuns, RunChoosing } from "../choose/choose-runs.ts";
import { type ListFinding, listNote } from "../choose/list-finding.ts";
import type { RunLists } from "../choose/run-lists.ts";
import { SeenSource } from "../proof/seen-source.ts";
import type { RunWatcher } from "../run-watcher.ts";
import { type ArchiveJob, type ArchiveSettings, archiveRun, type RunOutcome } from "./archive-run.ts";
import { archiveWidening } from "./archive-widening.ts";
import type { Budget } from "./budget.ts";

/** What one run came to: its manifest, or the error that ended it. */
export interface ArchivedRun extends RunRef {
  readonly outcome: RunOutcome | null;
  readonly seconds: number;
  /** Requests repeated for this run, by the job and by the gateway's client. */
  readonly retries: number;
  readonly error: RunvaultError | null;
  /** By table, one of the rows set aside, with the reason. */
  readonly setAside: Readonly<Partial<Record<string, SetAside>>>;
  /** Where all of them are. */
  readonly quarantineDir: string | null;
}

export type ArchiveEvent =
  | { readonly kind: "run"; readonly run: ArchivedRun }
  /** What there is to tell of a run's description, behind the run. */
  | { readonly kind: "findings"; readonly findings: readonly ListFinding[] }
  /** What failed beside the runs, and keeps none from being archived. */
  | { readonly kind: "error"; readonly error: RunvaultError };

/** What archives runs, and how. */
export interface ArchiveRunsJob
  extends Pick<RunChoosing, "folder" | "scratch" | "target" | "finishedStatus" | "types">,
    Pick<ArchiveJob, "clock" | "retry" | "wait" | "tool" | "signal"> {
  readonly budget: Budget;
  /** Converts the rows of all runs. */
  readonly duckdb: JobDuckDB;
  readonly settings: Partial<ArchiveSettings>;
  /** All tables unless given. */
  readonly tables?: readonly TableName[] | undefined;
  /** Whether columns are widened where values do not fit. Default: in an archive that this job makes. */
  readonly widen?: boolean | undefined;
  /** Tables that the operator says are empty. */
  readonly empty: readonly TableName[];
  readonly step: Step;
  readonly watcher: RunWatcher;
}

/** Moments of a job after which something of it stays, however it ends. */
const keepingSteps: ReadonlySet<string> = new Set([
  "segment-journalled",
  "survey-journalled",
  "window-compared",
  "parquet-journalled",
]);

/**
 * Archives the chosen runs one after another, and yields each once it is done. One that fails does not keep the others
 * from being archived, unless it is the job itself that cannot go on. Gives the runs that were not tried.
 */
export async function* archiveRuns(
  { archive: found, known, lists, runs }: ChosenRuns,
  job: ArchiveRunsJob,
): AsyncGenerator<ArchiveEvent, readonly RunRef[]> {
  const { budget, signal, watcher } = job;
  let archive = found;
  const step: Step = (name) => {
    if (keepingSteps.has(name)) budget.keep();
    job.step(name);
  };
  /** The archive, made for the first run that the gateway knows: a misspelt name leaves nothing behind. */
  const archiveFor = async (run: RunRef) => {
    if (archive !== null) return archive;
    await lists.describe(run, signal);
    const { folder, scratch, types } = job;
    archive = await openArchive(folder, { create: true, exactTypes: types, scratch, step });
    return archive;
  };
  const seen = new SeenSource(known ?? undefined, job.empty);
  // nobody relies yet on the types of an archive that this job makes
  const widens = job.widen ?? found === null;
  let tried = 0;
  /** Whether the words were remembered, or could not be. */
  let hasWords = false;
  for (const run of runs) {
    if (budget.signal.aborted) {
      yield { kind: "error", error: RunvaultError.from(budget.signal.reason) };
      break;
    }
    budget.begin();
    watcher.run?.(run, ++tried, runs.length);
    const errors: RunvaultError[] = [];
    const archiving = archiveOne(run, archiveFor, job, { lists, seen, step, widens }, errors);
    const archived = await archiving;
    for (const error of errors) yield { kind: "error", error };
    yield { kind: "run", run: archived };
    // only of a source that answers as one
    if (archived.outcome !== null && archive !== null && !hasWords) {
      hasWords = true;
      const error = await rememberWords(archive, job);
      if (error !== null) yield { kind: "error", error };
    }
    if (job.target.kind === "runs" && archived.error === null)
      yield { kind: "findings", findings: await remarkOn(run, lists, signal) };
    if (archived.error?.scope === "job") break;
  }
  return runs.slice(tried);
}

async function archiveOne(
  run: RunRef,
  archiveFor: (run: RunRef) => Promise<Archive>,
  job: ArchiveRunsJob,
  shared: {
    readonly lists: RunLists;
    readonly seen: SeenSource;
    readonly step: Step;
    readonly widens: boolean;
  },
  errors: RunvaultError[],
): Promise<ArchivedRun> {
  const startedMs = performance.now();
  const seconds = () => Math.round(performance.now() - startedMs) / 1000;
  const { gateway, explain } = job.budget;
  const retriesBefore = gateway.stats.retries;
  const clientRetries = () => gateway.stats.retries - retriesBefore;
  const { instanceId, runId } = run;
  try {
    const archive = await archiveFor(run);
    const outcome = await archiveInto(archive, { instanceId, runId }, job, shared, errors);
    return {
      ...{ instanceId, runId, outcome, seconds: seconds() },
      // an unchanged run's manifest tells of the job that made it
      retries: clientRetries() + (outcome.changed ? outcome.manifest.retries : 0),
      error: null,
      setAside: await setAsideOf(archive, outcome.manifest),
      quarantineDir: archive.layout.quarantineDir(run),
    };
  } catch (thrown) {
    const error = explain(RunvaultError.from(thrown).at({ instance: instanceId, run: runId }));
    return {
      ...{ instanceId, runId, outcome: null, seconds: seconds() },
      ...{ retries: clientRetries(), error, setAside: {}, quarantineDir: null },
    };
  }
}

async function archiveInto(
  archive: Archive,
  run: RunRef,
  job: ArchiveRunsJob,
  { lists, seen, step, widens }: Parameters<typeof archiveOne>[3],
  errors: RunvaultError[],
): Promise<RunOutcome> {
  const { budget, settings, tables, clock, retry, wait, tool, signal, duckdb, watcher } = job;
  const expected = new Map<string, number>();
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
      duckdb,
    },
    ...(tables === undefined ? {} : { tables }),
    // who names a run wants it looked into
    isManifestEnough: job.target.kind === "finished",
    ...(wait === undefined ? {} : { wait }),
    onPlan: (table, rows) => {
      if (rows === undefined) return;
      expected.set(table.name, rows);
      watcher.expect?.([...expected.values()].reduce((sum, count) => sum + count, 0));
    },
    onRows: (_table, rows, bytes) => watcher.rows?.(rows, bytes),
    onNote: (text) => watcher.log?.(run, text),
  };
  if (!widens) return await archiveRun(one);
  return await archiveWidening(one, {
    note: (text) => watcher.note?.(text),
    failed: (error) => errors.push(error),
  });
}

/** Of each table that has rows set aside, one of them. */
async function setAsideOf(archive: Archive, manifest: Manifest): Promise<ArchivedRun["setAside"]> {
  const examples: Record<string, SetAside> = {};
  for (const [name, table] of Object.entries(manifest.tables)) {
    const example = await exampleSetAside(archive, manifest, toldView(table).quarantine);
    if (example !== null) examples[name] = example;
  }
  return examples;
}

/** What is odd about the description of a run that was named; nothing where its source does not know it any more. */
async function remarkOn(run: RunRef, lists: RunLists, signal: AbortSignal): Promise<ListFinding[]> {
  const note = (text: string) => [listNote(run.instanceId, [run.runId], `${run.runId}: ${text}`)];
  try {
    const { remark } = (await lists.look(run, signal)).standing;
    return remark === null ? [] : note(remark);
  } catch (thrown) {
    // the run is archived: whatever stops the command is told with the next
    if (signal.aborted) return [];
    const { code, message } = RunvaultError.from(thrown);
    if (code === "run_not_found" || code === "instance_not_found") return [];
    // the run's own job went by what there was before
    return note(`could not be looked up in the run list again: ${message}`);
  }
}

/** Keeps the source's own words for a run that has ended, where they were given. The runs are archived all the same. */
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
