import type { Archive } from "../../archive/archive.ts";
import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import { type Manifest, runState, type TableManifest, tableState } from "../../archive/manifest/manifest.ts";
import { commitRun } from "../../archive/write/commit.ts";
import { RunJournal, type Step } from "../../archive/write/run-journal.ts";
import { exit, type RunvaultError } from "../../model/error.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import { markOf, provenStanding, type RunSituation } from "../proof/proven-standing.ts";

/** An attempt that could not begin: why, and which tables it concerns. */
export interface FailedAttempt {
  readonly archive: Archive;
  readonly committed: Manifest;
  readonly tables: readonly TableName[];
  readonly situation: Extract<RunSituation, "gone" | "reset">;
  /** Whether the operator closed the run: then what is proven of it is all there is. */
  readonly isClosed: boolean;
  /** What went wrong; recorded for the tables that are not done. */
  readonly error: RunvaultError;
  readonly at: string;
  readonly exactTypes: (table: TableName) => ExactTypes;
  readonly tool: string;
  readonly step: Step;
}

/**
 * Commits that an attempt on a run could not begin, or that no more rows are expected. Proven rows stay, and so do unproven
 * rows kept beside them. Commits nothing if the same is recorded already. The caller holds the run's lock.
 */
export async function recordAttempt(attempt: FailedAttempt): Promise<Manifest> {
  const { archive, committed, isClosed, at, tool, step } = attempt;
  const { layout, store } = archive;
  const concerned = attempt.tables.flatMap((name) => {
    const table = committed.tables[name] ?? untried(at);
    const next = after(table, attempt);
    return next === table ? [] : [[name, next] as const];
  });
  const closedAt = committed.closedAt ?? (isClosed ? at : null);
  if (concerned.length === 0 && closedAt === committed.closedAt) return committed;
  const tables = { ...committed.tables, ...Object.fromEntries(concerned) };
  const storageVersion = committed.run.final ? committed.run.storageVersion : null;
  const work = { layout, store, run: committed, committed, storageVersion, final: committed.run.final };
  await using journal = await RunJournal.open({ ...work, exactTypes: attempt.exactTypes }, step);
  const manifest: Manifest = {
    ...committed,
    generation: journal.generation,
    state: runState(Object.values(tables).map(({ state }) => state)),
    closedAt,
    tables,
    tool,
    startedAt: at,
    committedAt: at,
    durationMs: 0,
    retries: 0,
  };
  await commitRun(archive, manifest, journal, step);
  await journal.remove();
  return manifest;
}

/** A table without any attempt so far. */
function untried(at: string): TableManifest {
  const attempt = { outcome: "INCOMPLETE", at, behindSince: at, error: null, holding: null } as const;
  return { state: "INCOMPLETE", grain: "all", proven: null, attempt: { ...attempt, notes: [] } };
}

function after(
  table: TableManifest,
  { situation, isClosed, error, at }: Pick<FailedAttempt, "situation" | "isClosed" | "error" | "at">,
): TableManifest {
  // no more rows were expected
  if (situation === "gone" && acceptanceOf(table) !== null) return table;
  const { grain, proven, attempt } = table;
  const standing = provenStanding(markOf(proven), null, situation, isClosed);
  const isDone = standing.exit === exit.done;
  const { code, message, hint = null } = error;
  const isSame = attempt.error?.code === code && attempt.error.message === message;
  if (isDone ? attempt.outcome === "ok" : isSame) return table;
  const next = {
    proven,
    attempt: {
      outcome: isDone ? ("ok" as const) : ("INCOMPLETE" as const),
      at,
      behindSince: isDone ? null : (attempt.behindSince ?? at),
      error: isDone ? null : { code, message, hint, at },
      notes: standing.note === null ? [] : [standing.note],
      holding: attempt.holding,
      ...(attempt.came === undefined ? {} : { came: attempt.came }),
      ...(attempt.seen === undefined ? {} : { seen: attempt.seen }),
    },
  };
  return { state: tableState(next), grain, ...next };
}
