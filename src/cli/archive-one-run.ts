import type { Archive } from "../archive/archive.ts";
import type { Manifest } from "../archive/manifest.ts";
import { exampleSetAside, type SetAside } from "../archive/set-aside.ts";
import { toldView } from "../archive/table-view.ts";
import type { JobDuckDB } from "../duckdb/job-duckdb.ts";
import { type ArchiveJob, archiveRun, type RunOutcome } from "../extract/archive-run.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { exit, RunvaultError } from "../model/error.ts";
import { holds } from "../model/exact-types.ts";
import type { RunRef } from "../model/source.ts";
import { type TableName, tableNamed } from "../model/table.ts";
import { exitOf, type RunReport } from "./archive-report.ts";
import type { ArchiveValues } from "./archive-values.ts";
import type { Budget } from "./budget.ts";
import { type Progress, showProgress } from "./progress.ts";
import type { Session } from "./session.ts";
import { version } from "./version.ts";

/** What the command works with: the gateway that its options name, and the time. */
export interface ArchiveMeans extends Pick<ArchiveJob, "clock" | "retry" | "wait"> {
  readonly gateway: Gateway;
  /** Converts the rows of all runs. */
  readonly duckdb: JobDuckDB;
}

/** What all runs of a command share. */
export interface SharedWork extends Required<Pick<ArchiveJob, "settings" | "lists" | "seen" | "step">> {
  readonly budget: Budget;
  readonly progress: Progress;
}

/** Archives a run. What ends it is told on standard error, and is no error of the command. */
export async function archiveOneRun(
  run: RunRef,
  { gateway: source, ...means }: ArchiveMeans,
  archiveFor: (run: RunRef) => Promise<Archive>,
  values: ArchiveValues,
  session: Session,
  { budget, progress, ...shared }: SharedWork,
): Promise<RunReport> {
  const startedMs = performance.now();
  const seconds = () => Math.round(performance.now() - startedMs) / 1000;
  const retriesBefore = source.stats.retries;
  const clientRetries = () => source.stats.retries - retriesBefore;
  const { instanceId, runId } = run;
  const expected = new Map<string, number>();
  try {
    const archive = await archiveFor(run);
    const job: ArchiveJob = {
      source,
      archive,
      run: { instanceId, runId },
      ...(values.tables === undefined ? {} : { tables: values.tables }),
      signal: session.signal,
      tool: `runvault ${version()}`,
      ...means,
      ...shared,
      onPlan: (table, rows) => {
        if (rows === undefined) return;
        expected.set(table.name, rows);
        progress.expect([...expected.values()].reduce((sum, count) => sum + count, 0));
      },
      onRows: (_table, rows, bytes) => progress.add(rows, bytes),
      onNote: (text) => session.log.info({ instance: instanceId, run: runId }, text),
    };
    const outcome = await archiveWidening(job, values, session, shared.step);
    return {
      instanceId,
      runId,
      outcome,
      seconds: seconds(),
      // an unchanged run's manifest tells of the job that made it
      retries: clientRetries() + (outcome.changed ? outcome.manifest.retries : 0),
      error: null,
      exit: exitOf(outcome.manifest, values),
      setAside: await setAsideOf(archive, outcome.manifest),
      quarantineDir: archive.layout.quarantineDir(run),
    };
  } catch (thrown) {
    const error = budget.explain(RunvaultError.from(thrown).at({ instance: instanceId, run: runId }));
    const status = session.failure(error);
    return {
      instanceId,
      runId,
      outcome: null,
      seconds: seconds(),
      retries: clientRetries(),
      error,
      exit: status,
      setAside: {},
      quarantineDir: null,
    };
  }
}

/** Of each table that has rows set aside, one of them. */
async function setAsideOf(archive: Archive, manifest: Manifest): Promise<RunReport["setAside"]> {
  const examples: Record<string, SetAside> = {};
  for (const [name, table] of Object.entries(manifest.tables)) {
    const example = await exampleSetAside(archive.layout, manifest, toldView(table).quarantine);
    if (example !== null) examples[name] = example;
  }
  return examples;
}

/**
 * Archives a run; with `--widen auto`, as a new archive has it by itself, again for as long as values turn up that do
 * not fit their columns, which are widened in between: once for nearly any data, for then they are as wide as there is.
 */
async function archiveWidening(
  job: ArchiveJob,
  values: ArchiveValues,
  session: Session,
  step: (name: string) => void,
): Promise<RunOutcome> {
  let outcome = await archiveRun(job);
  while (values.widen === "auto" && outcome.tooNarrow.length > 0) {
    const { archive } = job;
    const wanted: Partial<Record<TableName, Record<string, string>>> = {};
    for (const { table, column, type } of outcome.tooNarrow) {
      const name = tableNamed(table).name;
      const wider = holds(widestType, type) ? widestType : type;
      wanted[name] = { ...wanted[name], [column]: wider };
      session.note(`widening ${table}.${column} to ${wider} in the whole archive`);
    }
    const { widenArchive } = await import("./rebuild-runs.ts");
    // the run's own progress goes on being shown
    const { stderr: stream, err: write } = session.terminal;
    const silent = { ...session, progress: () => showProgress({ style: "off", stream, write }) };
    const widened = await widenArchive(archive, wanted, step, silent);
    // each failure is told already; the run stays as it was committed
    if (widened.exit !== exit.done) return outcome;
    outcome = await archiveRun(job);
  }
  return outcome;
}

/** As many digits as there are, half of them decimals: what tokens are counted in. */
const widestType = "DECIMAL(38,18)";
