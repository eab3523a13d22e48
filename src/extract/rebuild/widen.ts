import { access } from "node:fs/promises";
import type { Archive } from "../../archive/archive.ts";
import { lockAllRuns, lockArchive, lockRun, lockRunInTurn } from "../../archive/lock.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { isMissing } from "../../archive/storage/fsync-files.ts";
import { requireRealFoldersOf } from "../../archive/storage/real-folder.ts";
import { replaceLinks } from "../../archive/upkeep/replace-links.ts";
import { refreshTables, tidyCommitted } from "../../archive/write/commit.ts";
import { holdsCommittedWork, type Step } from "../../archive/write/run-journal.ts";
import { RunvaultError } from "../../model/error.ts";
import { type ExactTypes, sameTypes } from "../../model/profile/exact-types.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import { fitsEveryValue } from "./fits-every-value.ts";
import { isOfOtherTypes } from "./rebuild-run.ts";
import { cannotHold, type WantedTypes, widenedTypes } from "./widened-types.ts";

/**
 * Gives columns of the archive another type: from now on everything is converted to it, and existing runs have to be
 * rebuilt. A type that is already right is no change. The public folders of these tables stay as they are until
 * `finishWidening`, so that readers never find files of two types there.
 *
 * No job may be running, because it would continue with the old types: throws `locked` if one is, and
 * `invalid_argument` if a type cannot hold everything that the present one can, and `archive_damaged` if a run could
 * not be rebuilt because some of its folders are links. Then nothing has changed.
 */
export async function startWidening(archive: Archive, wanted: WantedTypes, step: Step): Promise<void> {
  for (const manifest of await archive.manifests()) await requireRealFoldersOf(archive.layout, manifest);
  await using _lock = await lockArchive(archive.layout);
  await archive.refresh();
  const { exactTypes, shifted } = widenedTypes(archive, wanted);
  const changed = tableNames.filter((name) => !sameTypes(archive.exactTypes(name), exactTypes[name]));
  if (changed.length === 0) return;
  await using _runs = await lockAllRuns(archive);
  for (const column of shifted) if (!(await fitsEveryValue(archive, column))) throw cannotHold(column);
  const widening = {
    ...wideningOf(archive),
    ...Object.fromEntries(
      changed.map((name) => [name, archive.formerTypes(name) ?? archive.exactTypes(name)]),
    ),
  };
  await archive.replaceTypes({ exactTypes, widening }, () => step("widening-written"));
  step("widening-recorded");
}

/** The runs with a table that does not have the archive's types. */
export async function runsOfOtherTypes(archive: Archive): Promise<Manifest[]> {
  return (await archive.manifests()).filter((manifest) =>
    tableNames.some((name) => {
      const table = manifest.tables[name];
      return table !== undefined && isOfOtherTypes(archive, name, table);
    }),
  );
}

/** Finishes interrupted commits of runs that need nothing else. Runs that another job has locked are left to it. */
export async function tidyInterrupted(archive: Archive): Promise<void> {
  for (const manifest of await archive.manifests()) {
    if (!(await isThere(archive.layout.pendingDir(manifest)))) continue;
    await unlessLocked(archive, manifest, async (committed) => {
      if (await holdsCommittedWork(archive.layout, committed, committed))
        await tidyCommitted(archive, committed, wallClock());
    });
  }
}

/**
 * Finishes the change of types for tables that have the new types in every run: their public folders are made
 * anew aside and replace the old ones by a rename. Returns the tables that some run has in other types. Throws `locked`
 * if a job works on a run meanwhile, because it might commit or remove what is being linked; then nothing has changed.
 */
export async function finishWidening(
  archive: Archive,
  step: Step,
  signal: AbortSignal,
): Promise<TableName[]> {
  await archive.refresh();
  if (unfinishedTables(archive).length === 0) return [];
  const seen = await swapTables(archive, step);
  await linkNewRuns(archive, seen, signal);
  return unfinishedTables(archive);
}

/** The tables whose change of types is unfinished, as of the archive's last refresh. */
export function unfinishedTables(archive: Pick<Archive, "formerTypes">): TableName[] {
  return tableNames.filter((name) => archive.formerTypes(name) !== undefined);
}

/** Returns the runs whose links are made; null if no table was ready. */
async function swapTables(archive: Archive, step: Step): Promise<readonly Manifest[] | null> {
  await using _lock = await lockArchive(archive.layout);
  await archive.refresh();
  // running jobs matter only if there is something to do
  if (readyTables(archive, await archive.manifests()).length === 0) return null;
  await using _runs = await lockAllRuns(archive);
  const manifests = await archive.manifests();
  const ready = readyTables(archive, manifests);
  for (const name of ready) await replaceLinks(archive, name, manifests, step);
  const exactTypes = Object.fromEntries(tableNames.map((name) => [name, archive.exactTypes(name)]));
  const left = Object.entries(wideningOf(archive)).filter(([name]) => !ready.includes(name as TableName));
  await archive.replaceTypes({ exactTypes, widening: Object.fromEntries(left) });
  step("widening-finished");
  return manifests;
}

/** The tables whose types are being changed and that have the new ones in every run. */
function readyTables(archive: Archive, manifests: readonly Manifest[]): TableName[] {
  return unfinishedTables(archive).filter((name) =>
    manifests.every(({ tables: { [name]: table } }) => !table || !isOfOtherTypes(archive, name, table)),
  );
}

function wideningOf(archive: Archive): Partial<Record<TableName, ExactTypes>> {
  return Object.fromEntries(unfinishedTables(archive).map((name) => [name, archive.formerTypes(name)!]));
}

/** Links new runs: no lock stops a run's first job, and one that committed in the meantime has made no links. */
async function linkNewRuns(
  archive: Archive,
  seen: readonly Manifest[] | null,
  signal: AbortSignal,
): Promise<void> {
  if (seen === null) return;
  const linked = new Set(seen.map((manifest) => archive.layout.manifestFile(manifest)));
  for (const manifest of await archive.manifests()) {
    if (linked.has(archive.layout.manifestFile(manifest))) continue;
    await using _lock = await lockRunInTurn(archive.layout, manifest, signal);
    const now = await archive.manifest(manifest);
    if (now !== null) await refreshTables(archive, now);
  }
}

/** Does something with a run's manifest under the run's lock; does nothing if another job has the lock. */
async function unlessLocked(
  archive: Archive,
  run: RunRef,
  work: (committed: Manifest) => Promise<void>,
): Promise<void> {
  try {
    await using _lock = await lockRun(archive.layout, run);
    const committed = await archive.manifest(run);
    if (committed !== null) await work(committed);
  } catch (error) {
    if (!(error instanceof RunvaultError) || error.code !== "locked") throw error;
  }
}

async function isThere(folder: string): Promise<boolean> {
  return await access(folder).then(
    () => true,
    (error: unknown) => {
      if (isMissing(error)) return false;
      throw RunvaultError.from(error, { place: { file: folder } });
    },
  );
}
