import { exit, RunvaultError, type WiderColumn } from "../../model/error.ts";
import { exactType, hasRoom, widerType } from "../../model/profile/exact-types.ts";
import { type TableName, tableNamed } from "../../model/profile/table.ts";
import { type RebuildWork, type RebuiltRun, rebuildRuns, wideningRebuild } from "../rebuild/rebuild-runs.ts";
import type { SharedUse } from "../together/shared-use.ts";
import { type ArchiveJob, archiveRun, type RunOutcome } from "./archive-run.ts";

/** Receives what a change of types does to the runs of the whole archive. */
export interface WideningWatcher {
  readonly note: (text: string) => void;
  /** A run that could not be rebuilt, or why the change could not be completed. */
  readonly failed: (error: NonNullable<RebuiltRun["error"]>) => void;
}

/**
 * Archives a run, and repeats that as long as values do not fit their columns: these are widened in the whole archive in
 * between, while no job works on any of its runs. One round is enough for nearly all data, because the new types hold all
 * values that came, with room for more. Rows are converted again, not fetched again. If widening fails, the run stays as it
 * was committed. Throws as `archiveRun` does.
 */
export async function archiveWidening(
  job: ArchiveJob & Required<Pick<ArchiveJob, "step">>,
  archive: SharedUse,
  { note, failed }: WideningWatcher,
): Promise<RunOutcome> {
  const archiveOnce = () => archive.shared(() => archiveRun(job));
  let outcome = await archiveOnce();
  while (outcome.tooNarrow.length > 0) {
    const { tooNarrow } = outcome;
    const errors = await archive.alone(() => widen(job, tooNarrow, note));
    for (const error of errors) failed(error);
    if (errors.some((error) => error.exit !== exit.done)) return outcome;
    const { rows, bytes } = outcome;
    const next = await archiveOnce();
    outcome = { ...next, rows: rows + next.rows, bytes: bytes + next.bytes };
  }
  return outcome;
}

async function widen(
  { archive, signal, tool, step }: ArchiveJob & Required<Pick<ArchiveJob, "step">>,
  tooNarrow: readonly WiderColumn[],
  note: (text: string) => void,
): Promise<NonNullable<RebuiltRun["error"]>[]> {
  await archive.refresh();
  const wanted: Partial<Record<TableName, Record<string, string>>> = {};
  for (const { table, column, ...digits } of tooNarrow) {
    const { name } = tableNamed(table);
    const present = archive.exactTypes(name);
    // another run may have had it widened meanwhile
    if (hasRoom(exactType(present, column), digits)) continue;
    const type = widerType(present[column]!, digits)!;
    wanted[name] = { ...wanted[name], [column]: type };
    note(`widening ${table}.${column} to ${type} in the whole archive`);
  }
  let work: RebuildWork;
  try {
    work = await wideningRebuild(archive, wanted, step);
  } catch (error) {
    // other runs' values need these digits: the table's error says what it lacks, this one why it cannot get it
    if (error instanceof RunvaultError && error.code === "invalid_argument") return [error];
    throw error;
  }
  const rebuilding = rebuildRuns(archive, work, { signal, tool, step });
  const errors: (RebuiltRun["error"] | null)[] = [];
  let next = await rebuilding.next();
  for (; !next.done; next = await rebuilding.next()) errors.push(next.value.error);
  return [...errors, next.value.error].filter((error) => error !== null);
}
