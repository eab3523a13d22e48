import type { Archive } from "../../archive/archive.ts";
import { acceptanceJson, acceptanceOf } from "../../archive/manifest/acceptance.ts";
import { attemptHint, attemptReason } from "../../archive/manifest/attempt-text.ts";
import { consistentRuns } from "../../archive/manifest/found-runs.ts";
import { type Manifest, type TableState, tableStates } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import type { Job } from "../../pipeline/file/job-schema.ts";
import { takesRun } from "../../pipeline/file/takes-run.ts";
import type { JobHistory } from "../../pipeline/record/job-history.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";

/** A run that is not fully proven, with the table that has been so longest. */
export interface UnprovenRun extends RunRef {
  readonly table: TableName;
  readonly state: TableState;
  /** How many more tables are unproven. */
  readonly more: number;
  readonly since: string;
  readonly ageMs: number;
  readonly error: string | null;
  readonly reason: string | null;
  readonly hint: string | null;
  /** If all its unproven tables are accepted, the acceptance of that one: it fails no job and is not fetched again. */
  readonly accepted: ReturnType<typeof acceptanceJson>;
  /** The command that fetches it again; null if it is accepted. */
  readonly command: string | null;
}

/** An unproven run that the gateway will forget. */
interface ExpiringRun extends RunRef {
  readonly forgottenAt: string;
  /** Null if it has already been forgotten. */
  readonly leftMs: number | null;
  /** Within a quarter of `keeps`. */
  readonly soon: boolean;
}

/** The state of the runs of a job or archive. */
export interface RunsStanding {
  total: number;
  readonly states: Record<TableState, number>;
  /** Manifests that cannot be read. */
  damaged: number;
  /** Longest first. */
  readonly unproven: UnprovenRun[];
  /** Soonest first; null if the gateway's retention is unknown. */
  readonly expiring: readonly ExpiringRun[] | null;
}

interface Means {
  /** Null: all runs of the archive. */
  readonly job: Job | null;
  readonly histories: readonly JobHistory[];
  readonly now: Date;
  readonly onDamage: (error: RunvaultError) => void;
  /** Gets each manifest that was read. */
  readonly onManifest?: (manifest: Manifest) => Promise<void>;
  readonly command: CommandToCopy;
  readonly signal: AbortSignal;
}

/** Goes through the manifests once. */
export async function runsStanding(archive: Archive | null, means: Means): Promise<RunsStanding> {
  const { job, now, onDamage, onManifest, command, signal } = means;
  const unproven: UnprovenRun[] = [];
  const keepsMs = job?.gateway.keeps?.ms ?? null;
  const expiring: ExpiringRun[] = [];
  const standing: RunsStanding = {
    total: 0,
    states: Object.fromEntries(tableStates.map((state) => [state, 0])) as Record<TableState, number>,
    damaged: 0,
    unproven,
    expiring: keepsMs === null ? null : expiring,
  };
  if (archive === null) return standing;
  // throws if a folder is a link
  await archive.manifestFiles();
  for await (const { run, manifest, damage } of consistentRuns(archive)) {
    signal.throwIfAborted();
    if (job !== null && !takesRun(job, run)) continue;
    standing.total += 1;
    if (manifest === null) {
      standing.damaged += 1;
      const { message, file, hint } = damage!;
      onDamage(new RunvaultError("archive_damaged", message, { place: { file }, hint }));
      continue;
    }
    standing.states[manifest.state] += 1;
    await onManifest?.(manifest);
    const behind = unprovenOf(manifest, now, command);
    if (behind === null) continue;
    unproven.push(behind);
    if (behind.accepted === null && keepsMs !== null && manifest.run.ended !== null)
      expiring.push(expiringOf(manifest, keepsMs, now));
  }
  unproven.sort((a, b) => (a.since < b.since ? -1 : 1));
  expiring.sort((a, b) => (a.forgottenAt < b.forgottenAt ? -1 : 1));
  return standing;
}

function unprovenOf(manifest: Manifest, now: Date, command: CommandToCopy): UnprovenRun | null {
  const { instanceId, runId, tables } = manifest;
  const behind = tableNames
    .flatMap((table) => {
      const since = tables[table]?.attempt.behindSince ?? null;
      return since === null ? [] : [{ table, since }];
    })
    .sort((a, b) => (a.since < b.since ? -1 : 1));
  // tables that nobody accepted still need work
  const open = behind.filter(({ table }) => acceptanceOf(tables[table]) === null);
  const [longest] = open.length > 0 ? open : behind;
  if (longest === undefined) return null;
  const { table, since } = longest;
  const { state, attempt, proven } = tables[table]!;
  return {
    ...{ instanceId, runId, table, state, since, more: behind.length - 1 },
    ageMs: Math.max(0, now.getTime() - Date.parse(since)),
    error: attempt.error?.code ?? null,
    reason: attemptReason({ attempt, proven }),
    hint: attemptHint({ attempt }),
    accepted: acceptanceJson(tables[table]),
    command: open.length > 0 ? command("archive", formatRun(manifest)) : null,
  };
}

function expiringOf({ instanceId, runId, run }: Manifest, keepsMs: number, now: Date): ExpiringRun {
  const forgottenMs = Number(BigInt(run.ended!) / 1_000_000n) + keepsMs;
  const leftMs = forgottenMs - now.getTime();
  return {
    ...{ instanceId, runId },
    forgottenAt: new Date(Math.min(forgottenMs, 8.64e15)).toISOString(),
    leftMs: leftMs > 0 ? leftMs : null,
    soon: leftMs > 0 && leftMs < keepsMs / 4,
  };
}
