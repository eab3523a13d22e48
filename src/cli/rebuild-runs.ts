import { type Archive, openArchive } from "../archive/archive.ts";
import type { Manifest } from "../archive/manifest.ts";
import { JobDuckDB } from "../duckdb/job-duckdb.ts";
import { openRecord, type RebuildScope, removeRecord } from "../extract/rebuild-record.ts";
import { type RebuildOutcome, rebuildRun } from "../extract/rebuild-run.ts";
import {
  finishWidening,
  runsOfOtherTypes,
  startWidening,
  tidyInterrupted,
  unfinishedTables,
} from "../extract/widen.ts";
import type { WantedTypes } from "../extract/widened-types.ts";
import { exit, RunvaultError, worstExit } from "../model/error.ts";
import { countText, plural } from "../model/plural.ts";
import type { RunRef } from "../model/source.ts";
import type { TableName } from "../model/table.ts";
import { wallClock } from "../model/time.ts";
import { visible } from "../model/visible-text.ts";
import { type CommandToCopy, commandsToCopy } from "./command-to-copy.ts";
import { killStep } from "./kill-step.ts";
import { manifestsOf } from "./manifests-of.ts";
import { grouped, tookText } from "./number-text.ts";
import type { Progress } from "./progress.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";
import { version } from "./version.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly tables?: readonly TableName[] | undefined;
  readonly widen?: WantedTypes | undefined;
}

interface RunReport extends RunRef {
  readonly outcome: ReportedRebuild | null;
  readonly seconds: number;
  readonly error: RunvaultError | null;
  readonly exit: number;
}

/** Without the manifest, which names every file of its run: over many runs that adds up. */
type ReportedRebuild = Omit<RebuildOutcome, "manifest"> & Pick<Manifest, "generation" | "state">;

/** What is rebuilt, and up to which generation of each run; null: what is not in the archive's types. */
interface Work {
  readonly runs: readonly (RunRef & { readonly upTo: number | null })[];
  readonly tables: readonly TableName[] | undefined;
  /** Whether it is a change of types. */
  readonly widens: boolean;
  /** Forgets what an interruption would have to know. */
  readonly done: () => Promise<void>;
}

/** What came of it, over all runs. */
interface Result {
  readonly reports: readonly RunReport[];
  readonly notTried: readonly RunRef[];
  /** Tables whose types are not changed in all runs yet. */
  readonly unfinished: readonly TableName[];
  readonly exit: number;
}

/** Rebuilds the runs named, or all, one after another. One that fails does not keep the others from being rebuilt. */
export async function rebuildRuns(
  runs: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const step = killStep(session.terminal.env);
  const work =
    values.widen === undefined
      ? await plainWork(archive, runs, values.tables, step, session)
      : await wideningWork(archive, values.widen, step);
  // an archive takes hours: what is done is told at once, and stands where the command is stopped
  const tell = async (report: RunReport) => {
    if (!session.json) await session.print(`${visible(lineOf(report))}\n`);
  };
  const result = await doWork(archive, work, step, session, tell);
  const { unfinished } = result;
  const command = commandsToCopy(values, session);
  const goOn = unfinished.length === 0 ? null : commandToGoOn(archive, unfinished, command);
  if (session.json) {
    const { reports, ...rest } = result;
    await session.print(`${JSON.stringify({ ...rest, goOn, runs: reports.map(jsonOf) }, null, 2)}\n`);
  } else {
    const rest = restText(result, goOn);
    if (rest !== "") await session.print(rest);
  }
  return result.exit;
}

/** Gives columns of the archive other types, in all runs. Throws as `startWidening` does, with nothing changed. */
export async function widenArchive(
  archive: Archive,
  wanted: WantedTypes,
  step: (name: string) => void,
  session: Session,
): Promise<Result> {
  return await doWork(archive, await wideningWork(archive, wanted, step), step, session, async () => {});
}

async function doWork(
  archive: Archive,
  work: Work,
  step: (name: string) => void,
  session: Session,
  tell: (report: RunReport) => Promise<void>,
): Promise<Result> {
  await using duckdb = new JobDuckDB();
  const reports: RunReport[] = [];
  {
    using progress = session.progress();
    for (const run of work.runs) {
      progress.run(formatRun(run), reports.length + 1, work.runs.length);
      const report = await rebuildOne(archive, run, work.tables, step, session, duckdb, progress);
      reports.push(report);
      await tell(report);
      if (report.error?.scope === "job") break;
    }
  }
  const notTried = work.runs.slice(reports.length).map(({ instanceId, runId }) => ({ instanceId, runId }));
  const statuses = reports.map((report) => report.exit);
  if (worstExit(statuses) === exit.done) await work.done();
  try {
    await finishWidening(archive, step, session.signal);
  } catch (error) {
    session.signal.throwIfAborted();
    // another command's change of types is that command's affair
    if (work.widens || !(error instanceof RunvaultError) || error.code !== "locked")
      statuses.push(session.failure(error));
  }
  const unfinished = unfinishedTables(archive);
  return { reports, notTried, unfinished, exit: worstExit(statuses) };
}

async function plainWork(
  archive: Archive,
  named: readonly RunRef[],
  tables: readonly TableName[] | undefined,
  step: (name: string) => void,
  session: Session,
): Promise<Work> {
  const manifests = await manifestsOf(archive, named);
  const scope: RebuildScope = { runs: named, tables, tool: tool() };
  const runs = manifests.map(({ instanceId, runId, generation }) => ({ instanceId, runId, generation }));
  const startedAt = new Date().toISOString();
  const { record, resumed } = await openRecord(archive, scope, { startedAt, runs }, step);
  if (resumed) session.note(`continuing the rebuild of ${record.startedAt}`);
  const there = new Set(runs.map(formatRun));
  return {
    // runs removed since are no part of it any more
    runs: record.runs
      .filter((run) => there.has(formatRun(run)))
      .map(({ generation, ...run }) => ({ ...run, upTo: generation })),
    tables,
    widens: false,
    done: () => removeRecord(archive, scope),
  };
}

async function wideningWork(
  archive: Archive,
  wanted: WantedTypes,
  step: (name: string) => void,
): Promise<Work> {
  await startWidening(archive, wanted, step);
  await tidyInterrupted(archive);
  const runs = (await runsOfOtherTypes(archive)).map(({ instanceId, runId }) => ({
    instanceId,
    runId,
    upTo: null,
  }));
  // what is left to do shows in the manifests
  return { runs, tables: undefined, widens: true, done: async () => {} };
}

async function rebuildOne(
  archive: Archive,
  { upTo, ...run }: Work["runs"][number],
  tables: readonly TableName[] | undefined,
  step: (name: string) => void,
  session: Session,
  duckdb: JobDuckDB,
  progress: Progress,
): Promise<RunReport> {
  const startedMs = performance.now();
  const seconds = () => Math.round(performance.now() - startedMs) / 1000;
  try {
    session.signal.throwIfAborted();
    const { manifest, ...made } = await rebuildRun({
      archive,
      run,
      tables,
      upTo,
      clock: wallClock,
      signal: session.signal,
      tool: tool(),
      duckdb,
      step,
      onPlan: (rows) => progress.expect(rows),
      onRows: (rows, bytes) => progress.add(rows, bytes),
    });
    const { generation, state } = manifest;
    const outcome = { generation, state, ...made };
    return { ...run, outcome, seconds: seconds(), error: null, exit: exit.done };
  } catch (thrown) {
    session.signal.throwIfAborted();
    const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
    return { ...run, outcome: null, seconds: seconds(), error, exit: session.failure(error) };
  }
}

function tool(): string {
  return `runvault ${version()}`;
}

function jsonOf({ instanceId, runId, outcome, seconds, error, exit: status }: RunReport) {
  if (outcome === null) {
    const { code, message, hint = null } = error!;
    return { instanceId, runId, exit: status, error: { code, message, hint } };
  }
  const { generation, state, changed, buckets, resumedBuckets, rows } = outcome;
  return {
    ...{ instanceId, runId, exit: status, state, generation, changed },
    ...{ buckets, resumedBuckets, rows, seconds },
  };
}

/** The command that began the change of these tables' types, whichever command finds it unfinished. */
function commandToGoOn(archive: Archive, unfinished: readonly TableName[], command: CommandToCopy): string {
  const columns = unfinished.flatMap((table) => {
    const former = archive.formerTypes(table)!;
    return Object.entries(archive.exactTypes(table))
      .filter(([column, type]) => type !== former[column])
      .flatMap(([column, type]) => ["--widen", `${table}.${column}=${type.match(/\d+/g)!.join(",")}`]);
  });
  return command("rebuild", ...columns);
}

/** What there is to tell behind the runs that were rebuilt. */
function restText({ reports, notTried, unfinished }: Result, goOn: string | null): string {
  const lines = [
    ...notTried.map((run) => `${formatRun(run)}  not tried`),
    ...(unfinished.length === 0
      ? []
      : [
          `the types of ${unfinished.join(", ")} are not yet changed in all runs: \`${goOn}\` finishes the change`,
        ]),
  ];
  if (lines.length === 0) return reports.length === 0 ? "nothing to rebuild\n" : "";
  return `${lines.map(visible).join("\n")}\n`;
}

function lineOf(report: RunReport): string {
  const { outcome, error, seconds } = report;
  if (outcome === null) return `${formatRun(report)}  failed: ${error!.code}`;
  const { generation, changed, buckets, resumedBuckets, rows } = outcome;
  if (!changed) return `${formatRun(report)}  nothing to do, generation ${generation}`;
  const resumed = resumedBuckets === 0 ? "" : `, ${resumedBuckets} already there`;
  return `${formatRun(report)}  generation ${generation}: ${grouped(rows)} ${plural(rows, "row")}, ${countText(buckets, "bucket")} converted${resumed}, ${tookText(seconds * 1000)}`;
}
