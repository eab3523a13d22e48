import { rm } from "node:fs/promises";
import type { Layout } from "../../archive/layout.ts";
import { syncFolder } from "../../archive/storage/fsync-files.ts";
import { lstatOrNull } from "../../archive/storage/real-folder.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import type { ResultLine } from "./job-record.ts";
import { type RecordPlace, readEnds, recordPlaces } from "./read-records.ts";

/**
 * Removes records of executions that began longer ago than `keepMs`. Keeps the newest, the last that ended (the next
 * execution compares its troubles), and the last that succeeded. Removes only regular files with names of records,
 * whatever their contents. The caller must have the job's lock. Returns how many were removed.
 */
export async function thinRecords(
  layout: Layout,
  job: string,
  { keepMs, now = new Date() }: { readonly keepMs: number; readonly now?: Date },
): Promise<number> {
  const before = now.getTime() - keepMs;
  let isEnded = false;
  let isDone = false;
  let removed = 0;
  for (const [index, place] of (await recordPlaces(layout, job, () => {})).entries()) {
    const isOld = index > 0 && place.began.getTime() < before;
    // older ones are not needed once both are found
    const result: ResultLine | null = isDone ? null : await resultOf(layout, place);
    const isNeeded = result !== null && (!isEnded || result.exit === exit.done);
    if (result !== null) {
      isEnded = true;
      isDone = result.exit === exit.done;
    }
    if (!isOld || isNeeded || (await lstatOrNull(place.file))?.isFile() !== true) continue;
    await rm(place.file, { force: true });
    removed += 1;
  }
  if (removed > 0) await syncFolder(layout.recordsDir(job));
  return removed;
}

async function resultOf(layout: Layout, place: RecordPlace): Promise<ResultLine | null> {
  try {
    return (await readEnds(layout, place))?.result ?? null;
  } catch (error) {
    if (error instanceof RunvaultError && error.code === "archive_damaged") return null;
    throw error;
  }
}
