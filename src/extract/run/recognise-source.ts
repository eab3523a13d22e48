import type { Archive } from "../../archive/archive.ts";
import { readSources } from "../../archive/sources.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { HistorySource } from "../../model/source.ts";
import type { RunLists } from "../choose/run-lists.ts";
import { requireSameRun } from "./run-identity.ts";

/** The most archived runs to look at: enough to find one of this source among those of others. */
const mostRuns = 200;

/**
 * Finds out whether a source at an unknown address is one that the archive knows: ports and tunnels change. It is if an
 * archived run has the same beginning and proven rows there; then the address is remembered. Errors here concern no run
 * yet: they are reported when the run is archived.
 */
export async function recogniseSource(input: {
  readonly archive: Archive;
  readonly source: HistorySource;
  readonly lists: RunLists;
  readonly isMoved: boolean;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { archive, source, lists, isMoved, retry, signal } = input;
  const known = await readSources(archive);
  if (known.length === 0 || known.some(({ addresses }) => addresses.includes(source.label))) return;
  for (const file of (await archive.manifestFiles()).slice(0, mostRuns)) {
    try {
      const committed = await archive.manifestIn(file);
      const tables = Object.values(committed?.tables ?? {});
      if (committed === null || !tables.some(({ proven }) => (proven?.certificate?.rows ?? 0) > 0)) continue;
      const run = await lists.describe(committed, signal);
      const identity = { archive, source, run, committed, isMoved, isToFetch: false, retry, signal };
      // a run whose rows changed is left to its own job, which compares them all
      if (await requireSameRun(identity)) continue;
      return;
    } catch (thrown) {
      signal.throwIfAborted();
      const { code, scope, exit } = RunvaultError.from(thrown);
      // from another source, or damaged: the next one may show it
      const isOther = code === "run_not_found" || code === "instance_not_found";
      if (isOther || code === "history_identity_conflict" || code === "archive_damaged") continue;
      if (scope === "job" || exit === 1) throw thrown;
      return;
    }
  }
}
