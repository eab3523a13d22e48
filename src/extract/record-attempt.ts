import type { Archive } from "../archive/archive.ts";
import { commitRun } from "../archive/commit.ts";
import type { ExactTypes } from "../archive/convert-types.ts";
import { type Manifest, runState, type TableManifest, tableState } from "../archive/manifest.ts";
import { Pending, type Step } from "../archive/pending.ts";
import type { RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/table.ts";

/** An attempt that could not begin: why, and whose tables it concerns. */
export interface FailedAttempt {
  readonly archive: Archive;
  readonly committed: Manifest;
  readonly tables: readonly TableName[];
  /** What went wrong; null where the operator closed the run: then it stays as it is proven. */
  readonly error: RunvaultError | null;
  readonly at: string;
  readonly exactTypes: (table: TableName) => ExactTypes;
  readonly tool: string;
  readonly step: Step;
}

/**
 * Commits that an attempt on a run could not begin, or that nothing more is expected of it. What is proven stays. Nothing
 * is committed where the same is recorded already. Under the run's lock.
 */
export async function recordAttempt(attempt: FailedAttempt): Promise<Manifest> {
  const { archive, committed, error, at, tool, step } = attempt;
  const { layout } = archive;
  const isRecorded = (table: TableManifest) =>
    error === null ? table.attempt.outcome === "ok" : table.attempt.error?.code === error.code;
  const concerned = attempt.tables.flatMap((name) => {
    const table = committed.tables[name];
    return table === undefined || isRecorded(table) ? [] : [[name, after(table, error, at)] as const];
  });
  const closedAt = error === null ? (committed.closedAt ?? at) : committed.closedAt;
  if (concerned.length === 0 && closedAt === committed.closedAt) return committed;
  const tables = { ...committed.tables, ...Object.fromEntries(concerned) };
  const storageVersion = committed.run.final ? committed.run.storageVersion : null;
  const work = { layout, run: committed, committed, storageVersion, final: committed.run.final };
  await using pending = await Pending.open({ ...work, exactTypes: attempt.exactTypes }, step);
  const manifest: Manifest = {
    ...committed,
    generation: pending.generation,
    state: runState(Object.values(tables).map(({ state }) => state)),
    closedAt,
    tables,
    tool,
    startedAt: at,
    committedAt: at,
    durationMs: 0,
    retries: 0,
  };
  await commitRun(archive, manifest, pending, step);
  await pending.remove();
  return manifest;
}

function after(table: TableManifest, error: RunvaultError | null, at: string): TableManifest {
  const { proven, attempt } = table;
  const failed = {
    ...attempt,
    outcome: "INCOMPLETE",
    at,
    behindSince: attempt.behindSince ?? at,
    error: error && { code: error.code, message: error.message, hint: error.hint ?? null, at },
    notes: [],
  } as const;
  const closed = {
    outcome: "ok",
    at,
    behindSince: null,
    error: null,
    notes: [closedNote],
    holding: null,
  } as const;
  // of a table of which nothing is proven, there is nothing to close
  if (error === null && proven === null) return table;
  const next = {
    proven,
    attempt: error === null ? { ...closed, notes: [closedNote] } : { ...failed, notes: [] },
  };
  return { ...table, ...next, state: tableState(next) };
}

const closedNote = "closed by the operator: the gateway does not know the run any more";
