import { latestRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { instanceNotFound, runNotFound } from "../../model/usual-errors.ts";
import { namedRuns } from "./named-runs.ts";
import type { RunLists } from "./run-lists.ts";

/** A run, and when it began where that is known. */
export interface Begun {
  readonly run: RunRef;
  readonly began: bigint | undefined;
}

/** Of runs that began at the same time, or nobody knows when, the last in the list. One whose id is the word is itself. */
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
 * `instance_not_found`, `run_not_found` where the instance has no run, and why a list did not come.
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
