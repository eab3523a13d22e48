import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { concerning, lostFiles } from "../../archive/read/lost-files.ts";
import { requireRealFoldersOf } from "../../archive/storage/real-folder.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import { countText } from "../../model/text/plural.ts";
import { type RebuildJob, rebuildRun } from "../rebuild/rebuild-run.ts";

/** A job for a run that its source no longer has. */
type GoneJob = Omit<RebuildJob, "tables" | "upTo" | "onPlan" | "onRows"> & {
  readonly onNote?: (text: string) => void;
};

/**
 * Rebuilds a run's lost Parquet from its segments when its source no longer has the run; `gone` is the source's error. True
 * if it rebuilt any. Throws `archive_damaged` if segments are not what was committed. Takes the run's lock.
 */
export async function mendGoneRun(
  job: GoneJob,
  committed: Manifest,
  wanted: readonly Table[],
  gone: RunvaultError,
): Promise<boolean> {
  const { archive, run, clock, signal, tool, duckdb, step } = job;
  const lost = concerning(await lostFiles(archive, committed), wanted);
  if (lost.length === 0) return false;
  job.onNote?.(`${countText(lost.length, "file")} missing or damaged here: rebuilding Parquet from segments`);
  const more = { ...(duckdb === undefined ? {} : { duckdb }), ...(step === undefined ? {} : { step }) };
  const tables = wanted.map(({ name }) => name);
  // a link in place of a folder has its own hint
  await requireRealFoldersOf(archive.layout, run);
  try {
    return (await rebuildRun({ archive, run, tables, upTo: null, clock, signal, tool, ...more })).changed;
  } catch (thrown) {
    const error = RunvaultError.from(thrown);
    if (error.code !== "archive_damaged") throw error;
    throw damagedAndGone(committed, gone, error.message, error);
  }
}

/** Throws `archive_damaged` if files of these tables are lost. */
export async function requireWholeGone(
  archive: Archive,
  committed: Manifest,
  wanted: readonly Table[],
  gone: RunvaultError,
): Promise<void> {
  const lost = concerning(await lostFiles(archive, committed), wanted).map(({ file }) => file);
  if (lost.length === 0) return;
  const others = lost.length > 3 ? ` and ${lost.length - 3} more` : "";
  const what = `these files are missing or damaged here: ${lost.slice(0, 3).join(", ")}${others}`;
  throw damagedAndGone(committed, gone, what);
}

function damagedAndGone(
  { instanceId: instance, runId: run }: Manifest,
  gone: RunvaultError,
  what: string,
  cause?: RunvaultError,
): RunvaultError {
  return new RunvaultError("archive_damaged", `the gateway no longer has the run: ${gone.message}; ${what}`, {
    cause,
    place: { ...cause?.place, instance, run },
    hint: "Restore the files from a backup of the archive, then run the same command again.",
  });
}
