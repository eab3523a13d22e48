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
 * Gives columns of the archive another type: from here on everything is converted to it, and the runs that are there
 * have to be rebuilt. Types as they are already are no change. What people glob of the tables concerned stays as it is
 * until `finishWidening`, so that no reader meets files of two types there.
 *
 * No job may be under way meanwhile, for it would go on in the former types: throws `locked` where one is, and
 * `invalid_argument` where a type does not hold all that the present one holds, and `archive_damaged` where a run could
 * not be rebuilt because its folders are not all real ones. Then nothing has changed.
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

/** The runs of which some table is not in the archive's types. */
export async function runsOfOtherTypes(archive: Archive): Promise<Manifest[]> {
  return (await archive.manifests()).filter((manifest) =>
    tableNames.some((name) => {
      const table = manifest.tables[name];
      return table !== undefined && isOfOtherTypes(archive, name, table);
    }),
  );
}

/** Ends what kills left undone of commits, of runs that need nothing else. A run that another job holds is its affair. */
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
 * Ends the change of types of the tables of which every run has the new ones: the folders that people glob are made
 * anew aside and take the place of the former by a rename. Gives the tables of which some run has not. Throws `locked`
 * where a job works on a run meanwhile, for it might commit or remove what is being linked; then nothing has changed.
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

/** The tables whose change of types is not ended, as of the archive's last refresh. */
export function unfinishedTables(archive: Pick<Archive, "formerTypes">): TableName[] {
  return tableNames.filter((name) => archive.formerTypes(name) !== undefined);
}

/** Gives the runs whose links are made; null where no table was ready. */
async function swapTables(archive: Archive, step: Step): Promise<readonly Manifest[] | null> {
  await using _lock = await lockArchive(archive.layout);
  await archive.refresh();
  // jobs that are under way matter only once there is something to do
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

/** The tables whose types are being changed, and are the new ones in every run. */
function readyTables(archive: Archive, manifests: readonly Manifest[]): TableName[] {
  return unfinishedTables(archive).filter((name) =>
    manifests.every(({ tables: { [name]: table } }) => !table || !isOfOtherTypes(archive, name, table)),
  );
}

function wideningOf(archive: Archive): Partial<Record<TableName, ExactTypes>> {
  return Object.fromEntries(unfinishedTables(archive).map((name) => [name, archive.formerTypes(name)!]));
}

/** The first job of a run finds no lock to be kept out by: where it committed meanwhile, it made no links. */
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

/** Does something with a run's manifest, under the run's lock; nothing where another job has it. */
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
