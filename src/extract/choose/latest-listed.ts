import { latestRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { instanceNotFound, runNotFound } from "../../model/usual-errors.ts";
import { namedRuns } from "./named-runs.ts";
import type { RunLists } from "./run-lists.ts";

/** A run, and when it began, if known. */
export interface Begun {
  readonly run: RunRef;
  readonly began: bigint | undefined;
}

/** The run that began last, or of several (or unknown times) the last in the list. A run whose id is `latest` wins. */
export function latestOf(runs: readonly Begun[]): RunRef | null {
  const exact = runs.find(({ run }) => run.runId === latestRun);
  if (exact !== undefined) return exact.run;
  const last = runs.reduce<Begun | null>(
    (best, one) => (best !== null && (one.began ?? -1n) < (best.began ?? -1n) ? best : one),
    null,
  );
  return last?.run ?? null;
}

/**
 * The run of an instance that began last, by the gateway's lists: the word `latest` is never sent. Throws
 * `instance_not_found`, `run_not_found` if the instance has no run, or the error of a list that failed.
 */
export async function latestListed(
  lists: RunLists,
  instanceId: string,
  signal: AbortSignal,
): Promise<RunRef> {
  const { instances, unknown, findings } = await namedRuns(lists, [instanceId], signal);
  if (unknown.length > 0) throw instanceNotFound(instanceId);
  const listed = instances.find((instance) => instance.instanceId === instanceId)?.runs ?? [];
  const latest = latestOf(listed.map(({ run }) => ({ run, began: run.started })));
  if (latest !== null) return { instanceId, runId: latest.runId };
  throw findings.find(({ error }) => error !== null)?.error ?? runNotFound({ instanceId, runId: "" });
}
