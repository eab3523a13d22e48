import { worstExit } from "../../model/error.ts";
import type { FileFault } from "../../model/yaml/file-fault.ts";
import type { JobFile } from "../file/job-files.ts";
import { type ArchiveLook, lookAtArchive } from "./look-at-archive.ts";
import { type LookMeans, lookAtRuns, type RunsLook } from "./look-at-runs.ts";
import { lookAtTargets, type Target } from "./look-at-targets.ts";

/** The state of everything that a job file names. */
export interface ConnectedJob {
  readonly gateway: RunsLook["found"];
  readonly archive: Pick<ArchiveLook, "isUsable" | "freeBytes"> & {
    /** The format of the archive; null if there is none yet, or it cannot be read. */
    readonly format: number | null;
  };
  readonly targets: readonly Target[];
  readonly faults: readonly FileFault[];
  readonly exit: number;
}

/**
 * Checks that everything a job file names exists and can be used: gateway, archive, targets and notifiers. Asks the
 * gateway for its lists, and for facts of the first runs with work; writes and sends nothing else. Problems are in the
 * result; throws only when stopped.
 */
export async function connectJob(file: JobFile, means: LookMeans): Promise<ConnectedJob> {
  const [targets, { look, runs }] = await Promise.all([
    lookAtTargets(file, means),
    archiveAndRuns(file, means),
  ]);
  const findings = [
    ...runs.findings,
    ...look.findings,
    ...targets.flatMap(({ finding }) => (finding === null ? [] : [finding])),
  ];
  return {
    gateway: runs.found,
    archive: {
      isUsable: look.isUsable,
      freeBytes: look.freeBytes,
      format: look.archive?.format ?? null,
    },
    targets,
    faults: findings.map(({ fault }) => fault).sort(byPlace),
    exit: worstExit(findings.map(({ exit }) => exit)),
  };
}

async function archiveAndRuns(
  file: JobFile,
  means: LookMeans,
): Promise<{ readonly look: ArchiveLook; readonly runs: RunsLook }> {
  const look = await lookAtArchive(file);
  return { look, runs: await lookAtRuns(file, look.archive, means) };
}

function byPlace(a: FileFault, b: FileFault): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
