import type { Archive } from "../../archive/archive.ts";
import { committedBytes } from "../../archive/manifest/manifest-files.ts";
import { collectGarbage } from "../../archive/upkeep/collect-garbage.ts";
import { oldRuns } from "../../archive/upkeep/old-runs.ts";
import { removeRun } from "../../archive/upkeep/remove.ts";
import { runBytes } from "../../archive/upkeep/run-bytes.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { isoOf, type Nanoseconds } from "../../model/time.ts";
import type { Job } from "../file/job-schema.ts";
import { takesRun } from "../file/takes-run.ts";
import type { AfterLine } from "../record/job-record.ts";

/** The default of `runvault gc`, in nanoseconds. */
const graceNs = 86_400_000_000_000n;

/** A run that the job does not keep. */
export interface UnkeptRun extends RunRef {
  /** Of its files on disk, and of those that its manifest names. */
  readonly bytes: number;
  readonly committed: number;
  /** When it ended, by the rules of `runvault rm --older-than`. */
  readonly end: Nanoseconds;
  /** Whether it must go for lack of space, although it is not old enough. */
  readonly forRoom: boolean;
}

/** Whether a job file limits how long runs are kept. */
export function hasRetention({ keep }: Pick<Job, "keep">): boolean {
  return keep.runs !== undefined || keep.disk !== undefined;
}

/**
 * Runs that exceed a job file's `keep`, oldest first: COMPLETE runs of this job and gateway that are too old, and then
 * as many others as bring the archive below `keep.disk`. Removes nothing.
 */
export async function unkeptRuns(
  archive: Archive,
  job: Pick<Job, "keep" | "run" | "runs">,
  sources: ReadonlySet<string>,
  now: Nanoseconds,
  signal: AbortSignal,
): Promise<readonly UnkeptRun[]> {
  const { runs: age, disk } = job.keep;
  const own: UnkeptRun[] = [];
  const choice = { ageMs: disk === undefined ? (age?.ms ?? 0) : 0, instances: [], anyState: false };
  for await (const old of oldRuns(archive, choice, signal)) {
    if (old.kind !== "remove" || !takesRun(job, old.run)) continue;
    const manifest = await archive.manifest(old.run);
    if (manifest === null || !sources.has(manifest.source)) continue;
    const forRoom = age === undefined || old.end > now - age.ns;
    const bytes = await runBytes(archive, old.run);
    own.push({ ...old.run, bytes, committed: committedBytes(manifest), end: old.end, forRoom });
  }
  own.sort((a, b) => (a.end < b.end ? -1 : a.end > b.end ? 1 : 0));
  let left =
    disk === undefined ? 0 : (await archive.manifests()).reduce((sum, one) => sum + committedBytes(one), 0);
  return own.filter(({ forRoom, committed }) => {
    if (forRoom && (disk === undefined || left <= disk)) return false;
    left -= committed;
    return true;
  });
}

/** The result, as the record keeps it. */
export type Kept = Pick<AfterLine, "removedUpTo"> & {
  readonly removed: NonNullable<AfterLine["removed"]>;
  readonly error: RunvaultError | null;
  readonly runs: readonly RunRef[];
};

/**
 * Removes runs that are not kept, like `runvault rm`, and then unneeded files, like `runvault gc`. A run that another
 * process is working on stays until the next execution. `removedUpTo` comes from an earlier execution.
 */
export async function keepRuns(
  archive: Archive,
  unkept: readonly UnkeptRun[],
  removedUpTo: string | null,
  signal: AbortSignal,
): Promise<Kept> {
  const runs: UnkeptRun[] = [];
  let error: RunvaultError | null = null;
  for (const run of unkept) {
    signal.throwIfAborted();
    try {
      await removeRun(archive, run);
      runs.push(run);
    } catch (thrown) {
      const known = RunvaultError.from(thrown);
      if (known.scope === "job") throw known;
      if (known.code !== "locked") error ??= known;
    }
  }
  const { removed } = await collectGarbage(archive, {
    graceNs,
    signal,
    onFailure: (known) => (error ??= known),
  });
  const garbage = Object.values(removed).reduce((sum, { bytes }) => sum + bytes, 0);
  const newest = runs
    .filter(({ forRoom }) => forRoom)
    // rounded up: with an earlier time the run would be fetched again
    .map(({ end }) => isoOf(end + 999_999n))
    .concat(removedUpTo ?? [])
    .sort()
    .at(-1);
  return {
    ...{ error, runs },
    removed: {
      ...{ runs: runs.length, bytes: runs.reduce((sum, { bytes }) => sum + bytes, 0), garbage },
      named: runs.map(({ instanceId, runId, bytes }) => ({ instance: instanceId, run: runId, bytes })),
    },
    ...(newest === undefined ? {} : { removedUpTo: newest }),
  };
}
