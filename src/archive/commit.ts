import { readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunvaultError } from "../model/error.ts";
import { sameTypes } from "../model/exact-types.ts";
import { type TableName, tableNames } from "../model/table.ts";
import { type Nanoseconds, parseTime } from "../model/time.ts";
import type { Archive } from "./archive.ts";
import { linkOrCopy, moveFile, removeAsides, replaceFile, syncFolder } from "./durable.ts";
import { formerFiles, isKept, stayingFiles } from "./former-files.ts";
import type { Layout } from "./layout.ts";
import { type Holding, type Manifest, manifestText, type ParquetFile } from "./manifest.ts";
import { filesOf } from "./manifest-files.ts";
import { ownFiles } from "./own-names.ts";
import { holdsCommittedWork, type Pending, removeWork, type Step } from "./pending.ts";
import { permissionsAt } from "./permissions.ts";
import { lstatOrNull, makeRealFolder, requireRealFoldersOf, requireReplaceable } from "./real-folder.ts";
import { removeOwnFiles } from "./remove-own.ts";
import { holdingsOf } from "./table-view.ts";

/**
 * Makes `next` the committed truth of its run: files moved into the data folder, then the manifest replaced by one
 * rename, for all tables at once. The manifest is replaced only if it is still the generation that was read. It also says
 * which files of generations before are kept for their readers; others are removed.
 */
export async function commitRun(
  archive: Archive,
  next: Manifest,
  pending: Pending,
  step: Step,
): Promise<void> {
  const { layout } = archive;
  // types may have changed since the job began
  await archive.refresh();
  const before = await archive.manifest(next);
  if ((before?.generation ?? 0) !== next.generation - 1) {
    throw new RunvaultError(
      "locked",
      `another job has committed generation ${before?.generation} of this run`,
      {
        place: { instance: next.instanceId, run: next.runId },
        hint: "Run the same command again.",
      },
    );
  }
  refuseFormerTypes(archive, before, next);
  // again: the job may have taken hours, and from here on everything has to succeed
  await requireRealFoldersOf(layout, next);
  const dataDir = layout.dataDir(next);
  const quarantineDir = layout.quarantineDir(next);
  await makeRealFolder(layout, dataDir);
  const wanted = filesOf(next);
  const named = before === null ? null : filesOf(before);
  await moveInto(layout, dataDir, wanted.data, named?.data, pending, step);
  if (wanted.quarantine.size > 0) {
    await makeRealFolder(layout, quarantineDir);
    await moveInto(layout, quarantineDir, wanted.quarantine, named?.quarantine, pending, step);
  }
  step("commit-moved");
  await makeRealFolder(layout, dirname(layout.manifestFile(next)));
  const { file: mode } = await permissionsAt(layout, layout.manifestFile(next));
  const { former: _, ...current } = next;
  const former = formerFiles(before, next);
  const committed: Manifest = former.length === 0 ? current : { ...current, former };
  await replaceFile(layout.manifestFile(next), Buffer.from(manifestText(committed)), mode, () =>
    step("manifest-written"),
  );
  step("manifest-renamed");
  await removeAsides(layout.manifestFile(next));
  await refreshTables(archive, next);
  step("links-refreshed");
  await removeOthers(layout, committed, parseTime(committed.committedAt));
}

/** Removes the files of a run that its manifest neither names nor keeps for readers any more. */
async function removeOthers(layout: Layout, manifest: Manifest, now: Nanoseconds): Promise<void> {
  const { data, quarantine } = stayingFiles(manifest, now);
  await removeOwnFiles(layout, layout.dataDir(manifest), ownFiles.data, data);
  await removeOwnFiles(layout, layout.quarantineDir(manifest), ownFiles.quarantine, quarantine);
}

/** New Parquet is in the types that the archive has now; what is kept of the generation before stays as it is. */
function refuseFormerTypes(archive: Archive, before: Manifest | null, next: Manifest): void {
  for (const name of tableNames) {
    const former = heldIn(before, name);
    const isKnown = ({ parquet, exactTypes }: Holding) =>
      parquet.length === 0 ||
      sameTypes(exactTypes, archive.exactTypes(name)) ||
      former.some((holding) => sameTypes(exactTypes, holding.exactTypes));
    if (heldIn(next, name).every(isKnown)) continue;
    throw new RunvaultError("locked", `another job has changed the column types of ${name} in this archive`, {
      place: { instance: next.instanceId, run: next.runId, table: name },
      hint: "Run the same command again: what was fetched is kept, and converted to the new types.",
    });
  }
}

/**
 * Moves what is pending of the named files; the others have to be in the folder already. What the generation before
 * names, too, may have been lost since: that is no reason to keep back what this job has of other tables.
 */
async function moveInto(
  layout: Layout,
  folder: string,
  files: ReadonlySet<string>,
  before: ReadonlySet<string> | undefined,
  pending: Pending,
  step: Step,
): Promise<void> {
  const held = new Set(await readdir(pending.pendingFile(".")));
  const there = new Set(await readdir(folder));
  const { file: mode } = await permissionsAt(layout, folder);
  for (const file of files) {
    // what is on another disk stays there until the end of the job: until then a loss of power may cost the copy
    if (held.has(file)) await moveFile(pending.pendingFile(file), join(folder, file), mode);
    else if (!there.has(file) && before?.has(file) !== true) {
      throw new RunvaultError("archive_damaged", "a file that was to be committed has disappeared", {
        place: { instance: pending.run.instanceId, run: pending.run.runId, file: join(folder, file) },
        hint: "Find what else changes files in the archive's folder, then run the same command again: nothing was committed.",
      });
    }
    step("commit-moved-one");
  }
  await syncFolder(folder);
}

/**
 * Ends what a kill between a commit and the end of its job left undone: links, files that the manifest does not name,
 * the work folders of the committed generation. Work on a later generation stays. What has been kept for its hour goes,
 * too. Under the run's lock only.
 */
export async function tidyCommitted(archive: Archive, manifest: Manifest, now: Nanoseconds): Promise<void> {
  const { layout } = archive;
  await refreshTables(archive, manifest);
  const holdsWork = await holdsCommittedWork(layout, manifest, manifest);
  const isExpired = manifest.former?.some((former) => !isKept(former, now)) ?? false;
  if (holdsWork) await removeAsides(layout.manifestFile(manifest));
  if (holdsWork || isExpired) await removeOthers(layout, manifest, now);
  if (holdsWork) await removeWork(layout, manifest);
}

/**
 * Brings `tables/` in line with the manifest: one hard link (or copy) a readable bucket, renamed over the former, so
 * that a glob sees each bucket old or new, never torn, never twice. With `anew` copies are replaced as well, whatever is in
 * them. Gives how many were made.
 */
export async function refreshTables(archive: Archive, manifest: Manifest, anew = false): Promise<number> {
  const { layout } = archive;
  let made = 0;
  // after the manifest is in its place: who ends a change of types from here on sees this generation
  await archive.refresh();
  for (const name of tableNames) {
    // until every run has the new types, people go on seeing what they saw: files of one type
    if (archive.formerTypes(name) !== undefined) continue;
    const dir = layout.tableDir(name, manifest);
    const files = linkedParquet(manifest, name);
    if (files.length > 0) await makeRealFolder(layout, dir);
    for (const { file, bucket } of files) {
      const link = join(dir, `${bucket}.parquet`);
      if (await linkOver(join(layout.dataDir(manifest), file), link, anew)) made += 1;
    }
    const names = files.map(({ bucket }) => `${bucket}.parquet`);
    await removeOwnFiles(layout, dir, ownFiles.tables, new Set(names));
  }
  return made;
}

/** The Parquet files of a table that people see in `tables/`. */
export function linkedParquet(manifest: Manifest, name: TableName): readonly ParquetFile[] {
  return manifest.tables[name]?.proven?.parquet ?? [];
}

function heldIn(manifest: Manifest | null, name: TableName): Holding[] {
  const table = manifest?.tables[name];
  return table === undefined ? [] : holdingsOf(table);
}

/** Whether a link, or a copy, had to be made. */
async function linkOver(from: string, to: string, anew: boolean): Promise<boolean> {
  // of a symbolic link its own: it is replaced, wherever it points to
  const [source, target] = await Promise.all([lstatOrNull(from), lstatOrNull(to)]);
  requireReplaceable(to, target);
  // the file is lost, or something else is in its place, which its readers are told; what people glob may still be whole
  if (source === null || !source.isFile()) return false;
  if (target !== null && target.ino === source.ino && target.dev === source.dev) return false;
  // a copy, where files cannot be linked
  if (!anew && target?.isFile() && target.size === source.size && target.mtimeMs >= source.mtimeMs)
    return false;
  const aside = join(to, "..", `.${process.pid}.part`);
  await rm(aside, { force: true });
  await linkOrCopy(from, aside);
  await rename(aside, to);
  return true;
}
