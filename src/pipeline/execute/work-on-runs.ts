import { setTimeout as sleep } from "node:timers/promises";
import type { Archive } from "../../archive/archive.ts";
import type { KnownSource } from "../../archive/sources.ts";
import type { RunLists } from "../../extract/choose/run-lists.ts";
import { type ArchivedRun, type ArchiveRunsJob, archiveRuns } from "../../extract/run/archive-runs.ts";
import { heldStanding } from "../../extract/run/held-standing.ts";
import type { WantedProof } from "../../extract/run/run-horizon.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { heldOf, type JobRun, keyOf } from "./job-runs.ts";

export type WorkEvent =
  | { readonly kind: "run"; readonly run: JobRun; readonly archived: ArchivedRun }
  /** A failure apart from the runs. */
  | { readonly kind: "error"; readonly error: RunvaultError };

export interface WorkInput {
  readonly archive: Archive;
  readonly lists: RunLists;
  readonly known: KnownSource;
  /** In this order. */
  readonly runs: readonly JobRun[];
  readonly wanted: readonly Table[];
  readonly asked: WantedProof;
  readonly how: ArchiveRunsJob;
  /** How long to wait for runs that another process holds, in milliseconds. */
  readonly heldMs: number;
}

export interface WorkEnd {
  readonly notTried: readonly RunRef[];
  /** What ended all work. */
  readonly error: RunvaultError | null;
}

/** The first and the longest pause between looks at runs that another process holds. */
const pauses = { firstMs: 200, longestMs: 5_000 };

/**
 * Archives a job's runs, and reports each once. Runs held by another process come last. They are checked repeatedly
 * until that process is done, or until time is up: then they are reported as `locked`.
 */
export async function* workOnRuns(input: WorkInput): AsyncGenerator<WorkEvent, WorkEnd> {
  const { how, heldMs } = input;
  const { windDown, signal } = how;
  const stop = AbortSignal.any([signal, ...(windDown === undefined ? [] : [windDown])]);
  let queue: readonly JobRun[] = input.runs;
  let since: number | undefined;
  for (let pauseMs = pauses.firstMs; ; pauseMs = Math.min(pauseMs * 1.5, pauses.longestMs)) {
    const held: { readonly run: JobRun; readonly archived: ArchivedRun }[] = [];
    const byKey = new Map(queue.map((run) => [keyOf(run), run]));
    let ended: RunvaultError | null = null;
    const { archive, lists, known } = input;
    const runs = queue.map(({ instanceId, runId, listed }) => ({
      instanceId,
      runId,
      listed: listed !== null,
    }));
    const archiving = archiveRuns({ archive, lists, known, runs, findings: [] }, how);
    let notTried: readonly RunRef[];
    try {
      let next = await archiving.next();
      for (; !next.done; next = await archiving.next()) {
        const event = next.value;
        if (event.kind === "error") {
          yield event;
          if (event.error.scope === "job") ended ??= event.error;
        }
        if (event.kind !== "run") continue;
        const { error } = event.run;
        const told = { run: byKey.get(keyOf(event.run))!, archived: event.run };
        if (error?.code === "locked") {
          held.push(told);
          continue;
        }
        if (error?.scope === "job") ended ??= error;
        yield { kind: "run", ...told };
      }
      notTried = next.value;
    } finally {
      // nothing keeps running when the caller stops listening
      await archiving.return([]);
    }
    if (held.length === 0 || ended !== null || stop.aborted) {
      for (const one of held) yield { kind: "run", ...one };
      return { notTried, error: ended };
    }
    since ??= performance.now();
    const leftMs = heldMs - (performance.now() - since);
    if (leftMs <= 0) {
      for (const one of held) yield { kind: "run", ...one };
      return { notTried, error: null };
    }
    // nothing announces a free lock, so its file is checked again and again
    await sleep(Math.min(pauseMs, leftMs), undefined, { signal: stop }).catch(() => {});
    const left: JobRun[] = [];
    for (const one of held) {
      const done = await doneByOther(one.run, one.archived, input);
      if (done === null) left.push(one.run);
      else yield { kind: "run", run: one.run, archived: done };
    }
    if (left.length === 0) return { notTried, error: null };
    queue = left;
  }
}

/** A run that another process committed meanwhile as this job wants it; null if it did not. */
async function doneByOther(
  run: JobRun,
  archived: ArchivedRun,
  { archive, wanted, asked }: WorkInput,
): Promise<ArchivedRun | null> {
  const { listed, held } = run;
  if (listed === null) return null;
  try {
    const manifest = await archive.manifest(run);
    if (manifest === null || manifest.generation === held?.generation) return null;
    const now = heldOf(manifest, wanted);
    if (now.isBehind || wanted.some(({ name }) => manifest.tables[name] === undefined)) return null;
    if (listed.final && (await heldStanding(archive, manifest, listed, wanted, asked)) === "behind")
      return null;
    const nothing = { resumedSegments: 0, steps: {}, tooNarrow: [], rows: 0, bytes: 0, warnings: [] };
    return { ...archived, error: null, outcome: { manifest, changed: false, ...nothing } };
  } catch (thrown) {
    // the job at work on the run reports it
    if (RunvaultError.from(thrown).scope === "job") throw thrown;
    return null;
  }
}
