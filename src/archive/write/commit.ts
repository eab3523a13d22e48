import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { sameTypes } from "../../model/profile/exact-types.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { type Nanoseconds, parseTime } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import { formerFiles, isKept } from "../manifest/former-files.ts";
import {
  type FormerFile,
  type Holding,
  type Manifest,
  manifestText,
  type ParquetFile,
} from "../manifest/manifest.ts";
import { everyFile } from "../manifest/manifest-files.ts";
import { holdingsOf } from "../manifest/table-view.ts";
import { isMissing, linkOrCopy } from "../storage/fsync-files.ts";
import { ownFiles } from "../storage/own-names.ts";
import {
  lstatOrNull,
  makeRealFolder,
  requireRealFoldersOf,
  requireReplaceable,
} from "../storage/real-folder.ts";
import { removeLeftovers } from "../storage/remove-leftovers.ts";
import type { Store } from "../storage/store.ts";
import { removeOwnFiles } from "../upkeep/remove-own.ts";
import { readersOf, unnamedFiles } from "../upkeep/unnamed-files.ts";
import { holdsCommittedWork, type RunJournal, removeWork, type Step } from "./run-journal.ts";

/**
 * Commits `next` for its run: files are added beside those of earlier generations, then the manifest for all tables at
 * once. The manifest is replaced only if it is still the generation that was read. It also lists old files that are
 * kept for readers; others are removed.
 */
export async function commitRun(
  archive: Archive,
  next: Manifest,
  journal: RunJournal,
  step: Step,
): Promise<void> {
  const { layout, store } = archive;
  const key = layout.keyOf(layout.manifestFile(next));
  // types may have changed since the job began
  await archive.refresh();
  // read before the data that it identifies
  const token = (await store.head(key))?.token;
  const before = await archive.manifest(next);
  if ((before?.generation ?? 0) !== next.generation - 1) throw overtakenBy(before, next);
  refuseFormerTypes(archive, before, next);
  // again: the job may have taken hours, and from here everything must succeed
  await requireRealFoldersOf(layout, next);
  const requireStanding = async () => {
    if ((await store.head(key))?.token !== token) throw overtakenBy(await archive.manifest(next), next);
  };
  await putFiles(archive, before, next, journal, step, requireStanding);
  step("commit-moved");
  const { former: _, ...current } = next;
  const former = formerFiles(before, next);
  const committed: Manifest = former.length === 0 ? current : { ...current, former };
  const body = Buffer.from(manifestText(committed));
  const written = () => step("manifest-written");
  const put =
    token === undefined
      ? await store.putIfAbsent(key, body, written)
      : await store.replaceIf(key, body, token, written);
  if (put === null) throw overtakenBy(await archive.manifest(next), next);
  step("manifest-renamed");
  await refreshTables(archive, next);
  step("links-refreshed");
  await removeLeftovers(store, key);
  const ever = [...(before?.former ?? []), ...former];
  await removeOthers(archive, committed, ever, parseTime(committed.committedAt));
}

function overtakenBy(now: Manifest | null, next: Manifest): RunvaultError {
  return new RunvaultError("locked", `another job has committed generation ${now?.generation} of this run`, {
    place: { instance: next.instanceId, run: next.runId },
    hint: "Run the same command again.",
  });
}

/**
 * Removes files that the run's manifest does not name, except those within their hour and those that a reader may use.
 * The rest goes with a later job or garbage collection.
 */
async function removeOthers(
  archive: Archive,
  manifest: Manifest,
  formers: readonly FormerFile[],
  now: Nanoseconds,
): Promise<void> {
  const files = await unnamedFiles(archive, manifest, formers);
  const over = files.filter(({ former }) => former === null || !isKept(former, now));
  if (over.length === 0) return;
  const readers = await readersOf(archive.layout);
  const free = over.filter(({ seenUntil }) => !readers.since(seenUntil));
  if (free.length > 0) await archive.store.remove(free.map(({ key }) => key));
}

/** New Parquet must have the archive's current types; files kept from the previous generation stay as they are. */
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
 * Stores the pending files among the named ones; the others must already exist. Lost files that the previous generation
 * also names do not stop the commit of other tables.
 */
async function putFiles(
  { layout, store }: Archive,
  before: Manifest | null,
  next: Manifest,
  journal: RunJournal,
  step: Step,
  requireStanding: () => Promise<void>,
): Promise<void> {
  const held = new Set(await readdir(journal.folder));
  const known = new Set(
    before === null ? [] : [...everyFile(before), ...(before.former ?? [])].map(({ file }) => file),
  );
  const wanted = everyFile(next).map(({ folder, file }) => ({
    key: layout.committedKey(next, folder, file),
    file,
  }));
  for (const { key, file } of wanted) {
    if (held.has(file) || known.has(file) || (await store.head(key)) !== null) continue;
    throw new RunvaultError("archive_damaged", "a file disappeared before it could be committed", {
      place: { instance: next.instanceId, run: next.runId, file: store.nameOf(key) },
      hint: "Find what else changes files in the archive's folder, then run the same command again: nothing was committed.",
    });
  }
  // files named by earlier generations stay, whatever is pending
  const isToPut = ({ file }: (typeof wanted)[number]) => held.has(file) && !known.has(file);
  const object = ({ key, file }: (typeof wanted)[number]) => ({
    key,
    body: { syncedFile: journal.pendingFile(file) },
  });
  function* objects() {
    for (const one of wanted) {
      if (isToPut(one)) yield object(one);
      step("commit-moved-one");
    }
  }
  // originals on another disk stay until the end of the job, because a power cut could lose the copy
  const taken = new Set(await store.putAllIfAbsent(objects()));
  if (taken.size === 0) return;
  // no manifest names files of a killed commit; the pending ones count
  await requireStanding();
  await store.remove([...taken]);
  const again = await store.putAllIfAbsent(wanted.filter(({ key }) => taken.has(key)).map(object));
  if (again.length > 0) throw overtakenBy(before, next);
}

/**
 * Finishes what a kill between a commit and its job's end left undone: links, files that the manifest does not name,
 * work folders of the committed generation. Work on a later generation stays. Also removes files whose hour is over.
 * Only under the run's lock.
 */
export async function tidyCommitted(archive: Archive, manifest: Manifest, now: Nanoseconds): Promise<void> {
  const { layout, store } = archive;
  await refreshTables(archive, manifest);
  const holdsWork = await holdsCommittedWork(layout, manifest, manifest);
  const isExpired = manifest.former?.some((former) => !isKept(former, now)) ?? false;
  if (holdsWork) await removeLeftovers(store, layout.keyOf(layout.manifestFile(manifest)));
  if (holdsWork || isExpired) await removeOthers(archive, manifest, manifest.former ?? [], now);
  if (holdsWork) await removeWork(layout, manifest);
}

/**
 * Updates `tables/` from the manifest: one hard link (or copy) per readable bucket, renamed into place, so that a glob
 * sees each bucket old or new, never torn or twice. With `again` copies are replaced whatever they contain. Returns how
 * many were made.
 */
export async function refreshTables(archive: Archive, manifest: Manifest, anew = false): Promise<number> {
  const { layout, store } = archive;
  let made = 0;
  // after the manifest is in place: a job that finishes a change of types now sees this generation
  await archive.refresh();
  for (const name of tableNames) {
    // until every run has the new types, people keep seeing files of one type
    if (archive.formerTypes(name) !== undefined) continue;
    const dir = layout.tableDir(name, manifest);
    const files = linkedParquet(manifest, name);
    if (files.length > 0) await makeRealFolder(layout, dir);
    for (const { file, bucket } of files) {
      const link = join(dir, `${bucket}.parquet`);
      const key = layout.committedKey(manifest, "data", file);
      if (await linkOver(store, key, link, anew)) made += 1;
    }
    const names = files.map(({ bucket }) => `${bucket}.parquet`);
    await removeOwnFiles(layout, dir, ownFiles.tables, new Set(names));
  }
  return made;
}

/** The Parquet files of a table that are linked in `tables/`. */
export function linkedParquet(manifest: Manifest, name: TableName): readonly ParquetFile[] {
  return manifest.tables[name]?.proven?.parquet ?? [];
}

function heldIn(manifest: Manifest | null, name: TableName): Holding[] {
  const table = manifest?.tables[name];
  return table === undefined ? [] : holdingsOf(table);
}

/** Whether a link or copy had to be made. */
async function linkOver(store: Store, key: string, to: string, anew: boolean): Promise<boolean> {
  // the file is lost or replaced by something else, which its readers report; the link may still be whole
  const from = await store.localFile(key).catch((error: unknown) => {
    const isDamaged = error instanceof RunvaultError && error.code === "archive_damaged";
    if (isMissing(error) || isDamaged) return null;
    throw error;
  });
  // looks at a symbolic link itself: it is replaced, wherever it points
  const [source, target] = await Promise.all([from === null ? null : lstatOrNull(from), lstatOrNull(to)]);
  requireReplaceable(to, target);
  if (from === null || source === null) return false;
  if (target !== null && target.ino === source.ino && target.dev === source.dev) return false;
  // a copy, if files cannot be linked
  if (!anew && target?.isFile() && target.size === source.size && target.mtimeMs >= source.mtimeMs)
    return false;
  const aside = join(to, "..", `.${process.pid}.part`);
  await rm(aside, { force: true });
  await linkOrCopy(from, aside);
  await rename(aside, to);
  return true;
}
