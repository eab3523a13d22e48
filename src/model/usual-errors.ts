import { RunvaultError, usualHints } from "./error.ts";
import type { FilterName, Table } from "./profile/table.ts";
import type { RunRef } from "./source.ts";

/** An `instance_not_found` error says who was asked and how to list what it has. */
const askedFor = {
  gateway: { who: "the gateway", hint: usualHints.instance_not_found! },
  // serves in place of the gateway, so it uses the same words
  archive: { who: "the gateway", hint: usualHints.not_archived! },
  control: { who: "this server", hint: "GET /instances lists the instances." },
};

/** The error for an unknown instance. */
export function instanceNotFound(
  instanceId: string,
  asked: keyof typeof askedFor = "gateway",
): RunvaultError {
  const { who, hint } = askedFor[asked];
  return new RunvaultError("instance_not_found", `${who} has no instance ${JSON.stringify(instanceId)}`, {
    place: { instance: instanceId },
    hint,
  });
}

/** The error for an unknown run or, without a run id, for no runs; `known` are the instance's, oldest first. */
export function runNotFound({ instanceId, runId }: RunRef, known?: readonly string[]): RunvaultError {
  const which = runId === "" ? "no runs" : `no run ${JSON.stringify(runId)}`;
  const latest = known?.slice(-5).join(", ");
  const hint = latest === "" ? "The instance has no runs." : `The latest runs of this instance: ${latest}.`;
  return new RunvaultError("run_not_found", `instance ${JSON.stringify(instanceId)} has ${which}`, {
    place: { instance: instanceId, ...(runId === "" ? {} : { run: runId }) },
    ...(latest === undefined ? {} : { hint }),
  });
}

/** The error for a run that is not in the archive; `message` for several archives, or for more than the run. */
export function notArchived(
  { instanceId, runId }: RunRef,
  message = `the archive has no run ${JSON.stringify(runId)} of instance ${JSON.stringify(instanceId)}`,
): RunvaultError {
  return new RunvaultError("not_archived", message, { place: { instance: instanceId, run: runId } });
}

/** The error for an instance without runs in the archive. */
export function instanceNotArchived(instanceId: string): RunvaultError {
  return new RunvaultError(
    "not_archived",
    `the archive has no runs of instance ${JSON.stringify(instanceId)}`,
    {
      place: { instance: instanceId },
    },
  );
}

/** The error for a filter that does not apply to a table. */
export function filterRefused(name: FilterName, table: Table): RunvaultError {
  return new RunvaultError("invalid_argument", `the filter ${name} does not apply to ${table.name}`, {
    place: { table: table.name },
    hint: `The filters of ${table.name} are ${table.filters.join(", ")}.`,
  });
}

/** The error for a request that its sender cancelled. */
export function requestCancelled(reason: unknown): RunvaultError {
  return new RunvaultError("interrupted", "the request was cancelled", { cause: reason });
}

/** Throws `interrupted` once the signal of a request aborts. */
export function refuseWhenAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw requestCancelled(signal.reason);
}
