import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import type { Nanoseconds } from "../model/time.ts";
import { instanceNotFound, runNotFound } from "../model/usual-errors.ts";

/** What a source tells of a run, whichever way it tells it. */
export interface RunKnowledge extends RunRef {
  readonly status: string;
  readonly started: Nanoseconds | undefined;
  readonly ended: Nanoseconds | undefined;
  readonly final: boolean;
  readonly storageVersion: string | undefined;
}

/**
 * What tells whether rows of a finished run changed. Null where the source has no such mark, and while the run goes on:
 * the mark changes with every row then, and counts tell which windows did.
 */
export function settledVersion(run: RunKnowledge): string | null {
  return run.final ? (run.storageVersion ?? null) : null;
}

const int64 = z.string().regex(/^-?\d{1,19}$/);
const summarySchema = z.object({
  status: z.string(),
  ts_started: int64.optional(),
  ts_ended: int64.optional(),
});

/**
 * The run as its source describes it: by its list of runs, or, where there is none, by the run's summary. Throws
 * `run_not_found` or `instance_not_found`.
 */
export async function describeRun(
  source: HistorySource,
  run: RunRef,
  signal?: AbortSignal,
): Promise<RunKnowledge> {
  const runs = await source.runs(run.instanceId, signal);
  if (runs !== null) {
    const entry = runs.find(({ runId }) => runId === run.runId);
    if (entry === undefined)
      throw runNotFound(
        run,
        runs.map(({ runId }) => runId),
      );
    return entry;
  }
  const instance = (await source.instances(signal)).find(({ instanceId }) => instanceId === run.instanceId);
  if (instance !== undefined && instance.runIds.length > 0 && !instance.runIds.includes(run.runId)) {
    throw runNotFound(run, instance.runIds);
  }
  const summary = await source.document(run, "summary", signal);
  const parsed = summarySchema.safeParse(summary === null ? null : jsonOf(summary, run));
  if (!parsed.success) {
    return {
      ...run,
      status: "UNKNOWN",
      started: undefined,
      ended: undefined,
      final: false,
      storageVersion: undefined,
    };
  }
  const { status, ts_started, ts_ended } = parsed.data;
  const time = (text: string | undefined) => (text === undefined || text === "0" ? undefined : BigInt(text));
  const final = status === "FINISHED" || status === "FAILED";
  return {
    ...run,
    status,
    started: time(ts_started),
    ended: time(ts_ended),
    final,
    storageVersion: undefined,
  };
}

/** The finished and failed runs of one instance, or of all, oldest first. */
export async function finishedRuns(
  source: HistorySource,
  instanceId: string | undefined,
  signal?: AbortSignal,
): Promise<RunKnowledge[]> {
  return (await listRuns(source, instanceId, signal)).filter(({ final }) => final);
}

/** Every run the source names, of one instance or of all. Throws `instance_not_found`. */
export async function listRuns(
  source: HistorySource,
  instanceId: string | undefined,
  signal?: AbortSignal,
): Promise<RunKnowledge[]> {
  const instances = (await source.instances(signal)).filter(
    (entry) => instanceId === undefined || entry.instanceId === instanceId,
  );
  if (instanceId !== undefined && instances.length === 0) throw instanceNotFound(instanceId);
  const found: RunKnowledge[] = [];
  for (const { instanceId, runIds } of instances) {
    const runs = await source.runs(instanceId, signal);
    if (runs !== null) found.push(...runs);
    else for (const runId of runIds) found.push(await describeRun(source, { instanceId, runId }, signal));
  }
  return found;
}

function jsonOf(bytes: Uint8Array, run: RunRef): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch (cause) {
    throw new RunvaultError("not_a_gateway", "the run's summary is not JSON", {
      cause,
      place: { instance: run.instanceId, run: run.runId },
    });
  }
}
