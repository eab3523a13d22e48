import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import type { Manifest, TableManifest, TableState } from "../../archive/manifest/manifest.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import type { ArchivedRun } from "../../extract/run/archive-runs.ts";
import { exitOfRun } from "../../extract/run/exit-of-run.ts";
import { exit, type RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import type { RecordedError, RunLine, RunResult, TableLine } from "../record/job-record.ts";
import { attemptError } from "./attempt-error.ts";
import type { JobRun } from "./job-runs.ts";

/** Prepares errors for the record of an execution. */
export type Recorded = (error: RunvaultError) => RecordedError;

export interface RunLineInput {
  readonly run: JobRun;
  readonly archived: ArchivedRun;
  readonly wanted: readonly Table[];
  readonly at: string;
  readonly isStopping: boolean;
  /** Whether the previous execution reported that the gateway forgot it. */
  readonly isToldGone: boolean;
  readonly recorded: Recorded;
}

/** The result of a run, as the record keeps it. */
export function runLine(input: RunLineInput): RunLine {
  const { run, archived, wanted, at, recorded } = input;
  const { instanceId, runId, plan } = run;
  const { outcome, error, seconds, retries } = archived;
  const result = resultOf(input);
  const tables = outcome === null ? {} : tableLines(outcome.manifest, wanted, run, recorded);
  return {
    kind: "run",
    at,
    instance: instanceId,
    run: runId,
    plan,
    result,
    tables,
    rows: outcome?.rows ?? 0,
    bytes: outcome?.bytes ?? 0,
    retries,
    seconds,
    steps: { ...outcome?.steps },
    error: error === null ? null : recorded(error),
    exit: exitOf(result, input),
  };
}

function resultOf({ run, archived, isStopping }: RunLineInput): RunResult {
  const { outcome, error } = archived;
  if (outcome === null) {
    const isStopped = error?.code === "interrupted" || error?.code === "deadline";
    // waiting for a gateway ends with its error
    if (isStopped || (isStopping && error?.retry === "again")) return "stopped";
    // if planned as gone, it is no news that the gateway does not list it
    const isGone = error?.code === "run_not_found" || error?.code === "instance_not_found";
    if (isGone && run.plan === "gone") return "gone";
    return error?.code === "locked" ? "held" : "failed";
  }
  if (run.plan === "gone") return "gone";
  if (outcome.changed) return "archived";
  return outcome.manifest.generation === run.held?.generation ? "unchanged" : "by_other";
}

function exitOf(result: RunResult, { archived, wanted, isToldGone }: RunLineInput): number {
  const { outcome, error } = archived;
  if (result === "stopped") return exit.deadline;
  if (result === "gone" && isToldGone) return exit.done;
  if (outcome === null) return result === "gone" ? exit.incomplete : (error?.exit ?? exit.bug);
  return exitOfRun(outcome.manifest, { tables: wanted.map(({ name }) => name) });
}

function tableLines(
  manifest: Manifest,
  wanted: readonly Table[],
  { held }: JobRun,
  recorded: Recorded,
): Record<string, TableLine> {
  return Object.fromEntries(
    wanted.flatMap(({ name }) => {
      const table = manifest.tables[name];
      if (table === undefined) return [];
      const { certificate } = toldView(table);
      const before: TableState | null = held?.tables[name] ?? null;
      const line: TableLine = {
        state: table.state,
        before,
        proof: certificate?.proof ?? null,
        rows: certificate?.rows ?? 0,
        accepted: acceptanceOf(table) !== null,
        error: recordedAttempt(table, recorded),
      };
      return [[name, line] as const];
    }),
  );
}

/** Why the latest attempt at a table proved nothing; described by its state if there was no error. */
function recordedAttempt(table: TableManifest, recorded: Recorded): RecordedError | null {
  const error = attemptError(table);
  if (error === null) return null;
  const told = recorded(error);
  return table.attempt.error === null ? { ...told, code: table.attempt.outcome.toLowerCase() } : told;
}
