import type { TableState } from "../archive/manifest/manifest.ts";
import { toldView } from "../archive/manifest/table-view.ts";
import { JobDuckDB } from "../duckdb/job-duckdb.ts";
import { type ArchiveTarget, chooseRuns } from "../extract/choose/choose-runs.ts";
import type { ArchiveSettings } from "../extract/run/archive-run.ts";
import {
  type ArchivedRun,
  type ArchiveRunsJob,
  archiveRuns as archiveChosen,
} from "../extract/run/archive-runs.ts";
import { openBudget } from "../extract/run/budget.ts";
import type { RunWatcher } from "../extract/run-watcher.ts";
import { guardedSource } from "../gateway/adapter/guarded-source.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { openGateway } from "../gateway/open-gateway.ts";
import type { GatewayOptions } from "../gateway/options.ts";
import type { TransportChoice } from "../gateway/transport-choice.ts";
import type { RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/profile/table.ts";
import { type RetryPolicy, retryPolicy } from "../model/retry/retry-policy.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import { wallClock } from "../model/time.ts";
import { version } from "../model/version.ts";

export type { TableState } from "../archive/manifest/manifest.ts";
export { RunvaultError } from "../model/error.ts";
export type { RunRef } from "../model/source.ts";

export interface ArchiveOptions {
  /**
   * The gateway's address, or options for its client including the address; or your own source, which you have to dispose.
   */
  readonly gateway: string | (GatewayOptions & { readonly transport?: TransportChoice }) | HistorySource;
  /** The archive's folder; created for the first run that the gateway knows. */
  readonly archive: string;
  /** The runs to archive. Default: every finished run of the instances. */
  readonly runs?: readonly RunRef[];
  /** Instances whose finished runs are archived if `runs` is not given. Default: all. */
  readonly instances?: readonly string[];
  /** Default: all tables. */
  readonly tables?: readonly TableName[];
  readonly settings?: Partial<ArchiveSettings>;
  /** Ends the work early with the signal's reason; what was fetched is kept for the next time. */
  readonly signal?: AbortSignal;
  readonly watcher?: RunWatcher;
}

/** The result of one run. */
export interface RunResult extends RunRef {
  /** Null if an error ended the run before it was committed. */
  readonly state: TableState | null;
  /** False if the archive already held everything. */
  readonly changed: boolean;
  /** Rows and bytes that were fetched. */
  readonly rows: number;
  readonly bytes: number;
  /** By table, what the archive holds of it now, proven or not. */
  readonly tables: Readonly<
    Partial<Record<TableName, { readonly state: TableState; readonly rows: number }>>
  >;
  readonly error: RunvaultError | null;
}

/**
 * Archives runs and yields each once it is done. A run that fails has its error in its result and does not stop the others.
 * If the job as a whole cannot go on, no further run is tried, and the error is thrown after the run that met it. Throws
 * the signal's reason and, after the last run, RunvaultErrors if the gateway's lists leave doubt about which runs exist.
 */
export async function* archiveRuns(options: ArchiveOptions): AsyncGenerator<RunResult, void> {
  const { signal = new AbortController().signal, settings = {}, watcher = {} } = options;
  const { gateway: named } = options;
  const retry = (typeof named === "object" && "retry" in named ? named.retry : undefined) ?? retryPolicy();
  await using gateway = openNamed(named, retry);
  await using duckdb = new JobDuckDB();
  using budget = openBudget({}, gateway);
  const target: ArchiveTarget =
    options.runs === undefined
      ? { kind: "finished", instances: options.instances }
      : { kind: "runs", runs: options.runs };
  const means = { folder: options.archive, target, types: {}, retry, signal };
  const settled = () => wallClock() - (settings.settleNs ?? 60_000_000_000n);
  const chosen = await chooseRuns({ ...means, source: gateway, isMoved: false, isDry: false, settled });
  const job: ArchiveRunsJob = {
    ...{ ...means, budget, duckdb, settings, watcher, clock: wallClock, empty: [], step: () => {} },
    tables: options.tables,
    tool: `runvault ${version()}`,
  };
  const errors = chosen.findings.flatMap(({ error }) => error ?? []);
  for await (const event of archiveChosen(chosen, job)) {
    if (event.kind === "run") {
      const { error } = event.run;
      if (error !== null) signal.throwIfAborted();
      yield resultOf(event.run);
      if (error?.scope === "job") errors.push(error);
    } else if (event.kind === "error") errors.push(event.error);
    else errors.push(...event.findings.flatMap(({ error }) => error ?? []));
  }
  if (errors.length === 1) throw errors[0]!;
  if (errors.length > 1) throw new AggregateError(errors, errors.map(({ message }) => message).join("; "));
}

function openNamed(named: ArchiveOptions["gateway"], retry: RetryPolicy): Gateway {
  if (typeof named === "object" && "rows" in named) {
    return { ...guardedSource(named, named.label), [Symbol.asyncDispose]: async () => {} };
  }
  const { transport = "auto", ...options } = typeof named === "string" ? { baseUrl: named } : named;
  return openGateway({ ...options, retry }, transport);
}

/** Archives one run. Throws the error that ended it. */
export async function archiveRun(
  options: Omit<ArchiveOptions, "runs" | "instances"> & { readonly run: RunRef },
): Promise<RunResult> {
  let result: RunResult | undefined;
  for await (const one of archiveRuns({ ...options, runs: [options.run] })) result = one;
  if (result?.error) throw result.error;
  return result!;
}

function resultOf({ instanceId, runId, outcome, error }: ArchivedRun): RunResult {
  if (outcome === null) {
    return { instanceId, runId, state: null, changed: false, rows: 0, bytes: 0, tables: {}, error };
  }
  const { manifest, changed, rows, bytes } = outcome;
  const tables = Object.entries(manifest.tables).map(([name, table]) => {
    return [name, { state: table.state, rows: toldView(table).certificate?.rows ?? 0 }];
  });
  return {
    ...{ instanceId, runId, state: manifest.state, changed, rows, bytes, error: null },
    tables: Object.fromEntries(tables),
  };
}
