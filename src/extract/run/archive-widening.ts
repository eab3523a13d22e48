import { exit } from "../../model/error.ts";
import { holds } from "../../model/profile/exact-types.ts";
import { type TableName, tableNamed } from "../../model/profile/table.ts";
import { type RebuiltRun, rebuildRuns, wideningRebuild } from "../rebuild/rebuild-runs.ts";
import type { SharedUse } from "../together/shared-use.ts";
import { type ArchiveJob, archiveRun, type RunOutcome } from "./archive-run.ts";

/** Hears what a change of types does to the runs of the whole archive. */
export interface WideningWatcher {
  readonly note: (text: string) => void;
  /** A run that could not be rebuilt, or what kept the change from being ended. */
  readonly failed: (error: NonNullable<RebuiltRun["error"]>) => void;
}

/**
 * Archives a run, and again for as long as values turn up that do not fit their columns, which are widened in the whole
 * archive in between, while no job has any run of it: once for nearly any data, for then they are as wide as there is.
 * Where that fails the run stays as it was committed. Throws as `archiveRun` and `startWidening` do.
 */
export async function archiveWidening(
  job: ArchiveJob & Required<Pick<ArchiveJob, "step">>,
  archive: SharedUse,
  { note, failed }: WideningWatcher,
): Promise<RunOutcome> {
  const archiveOnce = () => archive.shared(() => archiveRun(job));
  let outcome = await archiveOnce();
  while (outcome.tooNarrow.length > 0) {
    const wanted: Partial<Record<TableName, Record<string, string>>> = {};
    for (const { table, column, type } of outcome.tooNarrow) {
      const name = tableNamed(table).name;
      const wider = holds(widestType, type) ? widestType : type;
      wanted[name] = { ...wanted[name], [column]: wider };
      note(`widening ${table}.${column} to ${wider} in the whole archive`);
    }
    const errors = await archive.alone(() => widen(job, wanted));
    for (const error of errors) failed(error);
    if (errors.some((error) => error.exit !== exit.done)) return outcome;
    outcome = await archiveOnce();
  }
  return outcome;
}

async function widen(
  { archive, signal, tool, step }: ArchiveJob & Required<Pick<ArchiveJob, "step">>,
  wanted: Parameters<typeof wideningRebuild>[1],
): Promise<NonNullable<RebuiltRun["error"]>[]> {
  const work = await wideningRebuild(archive, wanted, step);
  const rebuilding = rebuildRuns(archive, work, { signal, tool, step });
  const errors: (RebuiltRun["error"] | null)[] = [];
  let next = await rebuilding.next();
  for (; !next.done; next = await rebuilding.next()) errors.push(next.value.error);
  return [...errors, next.value.error].filter((error) => error !== null);
}

/** As many digits as there are, half of them decimals: what tokens are counted in. */
const widestType = "DECIMAL(38,18)";
