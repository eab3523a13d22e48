import { Gauge, Registry } from "prom-client";
import { type TableState, tableStates } from "../../archive/manifest/manifest.ts";
import { exit } from "../../model/error.ts";
import type { BeginLine, ResultLine, RunLine } from "../record/job-record.ts";

/** The data for an execution's metrics. */
export interface MeasuredJob {
  readonly begin: Pick<BeginLine, "job">;
  readonly result: Omit<ResultLine, "troubles">;
  readonly runs: readonly RunLine[];
  /** End of the last earlier execution that succeeded: an instant; null if unknown. */
  readonly lastSuccess: string | null;
  /** When the schedule starts the job next; null without a schedule. */
  readonly nextStart: string | null;
  /** How many notifications failed. */
  readonly notifiersFailed: number;
}

/** The metric that failed executions must keep. */
const lastSuccessName = "runvault_job_last_success_timestamp_seconds";

/** The metrics of an execution as Prometheus text, with the labels job, table and state; never a run. */
export async function metricsText(measured: MeasuredJob): Promise<string> {
  const registry = new Registry();
  addFigures(registry, measured);
  return await registry.metrics();
}

/** Adds an execution's metrics to those of other jobs. */
export function addFigures(registry: Registry, measured: MeasuredJob): void {
  const { begin, result, runs, lastSuccess, nextStart } = measured;
  const job = begin.job;
  const set = (name: string, help: string, value: number | null) => {
    if (value !== null) gaugeOf(registry, name, help, ["job"]).set({ job }, value);
  };
  set(
    lastSuccessName,
    "End of the last execution with exit status 0.",
    result.exit === exit.done ? secondsOf(result.at) : lastSuccess === null ? null : secondsOf(lastSuccess),
  );
  set("runvault_job_last_end_timestamp_seconds", "End of the last execution.", secondsOf(result.at));
  set("runvault_job_duration_seconds", "Duration of the last execution.", result.seconds);
  set("runvault_job_exit_code", "Exit status of the last execution.", result.exit);
  set("runvault_job_rows", "Rows that the last execution fetched.", result.rows);
  set("runvault_job_bytes", "Bytes of rows that the last execution fetched.", result.bytes);
  set("runvault_job_requests", "Requests of the last execution, retries included.", result.requests);
  set("runvault_job_retries", "Requests that the last execution repeated.", result.retries);
  set("runvault_job_quarantined_rows", "Rows that the last execution set aside.", result.quarantinedRows);
  set(
    "runvault_job_notifiers_failed",
    "Failed notifications of the last execution.",
    measured.notifiersFailed,
  );
  if (nextStart !== null) setNextStart(registry, job, nextStart);
  set("runvault_runs_expiring", "Unproven runs that the gateway is about to forget.", result.expiring);
  set("runvault_archive_free_bytes", "Free space of the archive's file system.", result.freeBytes);

  const states = gaugeOf(
    registry,
    "runvault_runs",
    "Runs of the job in the archive, by the worst state among their tables.",
    ["job", "state"],
  );
  for (const state of tableStates) states.set({ job, state }, result.states[state] ?? 0);
  for (const [table, { rows: all, states: byState }] of committedTables(runs)) {
    gaugeOf(
      registry,
      "runvault_job_table_rows",
      "Rows of the tables that the last execution committed, as the archive has them.",
      ["job", "table"],
    ).set({ job, table }, all);
    const unproven = gaugeOf(
      registry,
      "runvault_job_tables",
      "Tables that the last execution committed, by their state.",
      ["job", "table", "state"],
    );
    for (const [state, count] of byState) unproven.set({ job, table, state }, count);
  }
}

/** Sets when a job starts next: an instant. */
export function setNextStart(registry: Registry, job: string, start: string): void {
  const help = "When the schedule starts the job next.";
  gaugeOf(registry, "runvault_job_next_start_timestamp_seconds", help, ["job"]).set(
    { job },
    secondsOf(start),
  );
}

/** The gauge with this name, created if new. */
function gaugeOf(registry: Registry, name: string, help: string, labelNames: string[]): Gauge {
  const known = registry.getSingleMetric(name);
  return known instanceof Gauge ? known : new Gauge({ name, help, labelNames, registers: [registry] });
}

/** What was committed, by table; runs without a commit do not count. */
function committedTables(runs: readonly RunLine[]) {
  const tables = new Map<string, { rows: number; readonly states: Map<TableState, number> }>();
  for (const { result, tables: ofRun } of runs) {
    if (result !== "archived") continue;
    for (const [table, { rows, state }] of Object.entries(ofRun)) {
      const sum = tables.get(table) ?? { rows: 0, states: new Map<TableState, number>() };
      sum.rows += rows;
      sum.states.set(state, (sum.states.get(state) ?? 0) + 1);
      tables.set(table, sum);
    }
  }
  return tables;
}

/** When a job last succeeded, by a text from `metricsText`; null if the text does not say. */
export function lastSuccessIn(text: string, job: string): string | null {
  const line = new RegExp(`^${lastSuccessName}\\{job="${job}"\\} ([0-9.e+]{1,30})$`, "m").exec(text);
  const ms = Math.round(Number(line?.[1]) * 1000);
  return Number.isFinite(ms) && ms > 0 && ms <= 8.64e15 ? new Date(ms).toISOString() : null;
}

function secondsOf(instant: string): number {
  return Date.parse(instant) / 1000;
}
