import { basename, dirname, join } from "node:path";
import { RunvaultError, usualHints } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { instanceNotArchived, notArchived } from "../../model/usual-errors.ts";
import { type Archive, misplacedManifest } from "../archive.ts";
import { mostBytes } from "../storage/archive-file.ts";
import { damageOf } from "../storage/damage-of.ts";
import { namesIn } from "../storage/names-in.ts";
import { misplacedInstances, requireRealFolder } from "../storage/real-folder.ts";
import { checkManifest } from "../verify/verify-manifest.ts";
import { CheckList } from "../verify/verify-report.ts";
import type { Manifest } from "./manifest.ts";
import { isManifestName, manifestPaths } from "./manifest-paths.ts";
import { parseManifest } from "./parse-manifest.ts";

/** A run, found by the place of its manifest. */
export interface FoundRun {
  /** If the manifest cannot be read, the ids in its path. */
  readonly run: RunRef;
  readonly file: string;
  readonly manifest: Manifest | null;
  /** What is wrong with the manifest; null if nothing is. */
  readonly damage: Damage | null;
}

/** Why a manifest cannot be used, where, and what to do. */
export interface Damage {
  readonly message: string;
  /** The manifest, or the part of its path that is not a folder. */
  readonly file: string;
  readonly hint: string;
}

/** A run, or all runs of an instance. */
export type RunChoice = RunRef | { readonly instanceId: string; readonly runId?: never };

/** The chosen runs, or all, including those with a damaged manifest. Throws `not_archived` for a missing one. */
export async function* foundRuns(
  archive: Archive,
  chosen: readonly RunChoice[] = [],
): AsyncGenerator<FoundRun> {
  if (chosen.length === 0) {
    for (const file of await pathsIn(archive)) yield* runAt(archive, file);
  }
  for (const { instanceId, runId } of chosen) {
    if (runId === undefined) yield* runsOf(archive, instanceId);
    else yield await foundRun(archive, { instanceId, runId });
  }
}

async function* runsOf(archive: Archive, instanceId: string): AsyncGenerator<FoundRun> {
  let isAny = false;
  for (const file of await pathsIn(archive, archive.layout.instanceFolder(instanceId))) {
    for await (const found of runAt(archive, file)) {
      isAny = true;
      yield found;
    }
  }
  if (isAny) return;
  // something else may be in the place of its folder
  await requireRealFolder(
    archive.layout,
    join(archive.layout.runsDir, archive.layout.instanceFolder(instanceId)),
  );
  throw instanceNotArchived(instanceId);
}

/** All manifests, or an instance's, and those behind a misplaced link, whose runs are reported as damaged. */
async function pathsIn({ layout, store }: Archive, instance?: string): Promise<string[]> {
  const paths = await manifestPaths(layout, store, instance);
  for (const { folder } of await misplacedInstances(layout)) {
    if (instance !== undefined && folder !== instance) continue;
    const names = (await namesIn(join(layout.runsDir, folder))).filter(isManifestName);
    paths.push(...names.map((name) => join(layout.runsDir, folder, name)));
  }
  return paths.sort();
}

/** The run whose manifest has this path; none if it was removed since it was listed. */
async function* runAt({ layout, store }: Archive, file: string): AsyncGenerator<FoundRun> {
  const idIn = (name: string) => layout.idOf(name) ?? name;
  const named = { instanceId: idIn(basename(dirname(file))), runId: idIn(basename(file, ".json")) };
  try {
    const bytes = await store.get(layout.keyOf(file), mostBytes.manifest);
    if (bytes === null) return;
    const manifest = parseManifest(bytes.toString("utf8"), file);
    const run = { instanceId: manifest.instanceId, runId: manifest.runId };
    if (layout.manifestFile(run) === file) yield { run, file, manifest, damage: null };
    else
      yield { run: named, file, manifest: null, damage: damageIn(misplacedManifest(manifest, file), file) };
  } catch (error) {
    const damage = damageIn(RunvaultError.from(error, { place: { file } }), file);
    yield { run: named, file, manifest: null, damage };
  }
}

async function foundRun(archive: Archive, run: RunRef): Promise<FoundRun> {
  const file = archive.layout.manifestFile(run);
  try {
    const manifest = await archive.manifest(run);
    if (manifest === null) throw notArchived(run);
    return { run, file, manifest, damage: null };
  } catch (error) {
    return { run, file, manifest: null, damage: damageIn(error, file) };
  }
}

/** The damage that reading a manifest threw; rethrows any other error. */
function damageIn(error: unknown, file: string): Damage {
  const message = damageOf(error);
  const { place, hint = usualHints.archive_damaged! } = error as RunvaultError;
  return { message, file: place.file ?? file, hint };
}

/**
 * The same as `foundRuns`, but a manifest that contradicts itself also counts as damaged: its hash does not make its
 * contents true. For callers that report or act on COMPLETE.
 */
export async function* consistentRuns(
  archive: Archive,
  chosen: readonly RunChoice[] = [],
): AsyncGenerator<FoundRun> {
  for await (const found of foundRuns(archive, chosen)) {
    const fault = found.manifest === null ? null : contradictionIn(found.manifest);
    if (fault === null) yield found;
    else {
      const message = `the manifest contradicts itself: ${fault}`;
      const hint = usualHints.archive_damaged!;
      yield { ...found, manifest: null, damage: { message, file: found.file, hint } };
    }
  }
}

/** The first contradiction in a manifest; null if there is none. */
function contradictionIn(manifest: Manifest): string | null {
  const list = new CheckList(manifest, "");
  checkManifest(list, manifest);
  const fault = list.checks.find(({ level }) => level === "damaged");
  if (fault === undefined) return null;
  return fault.table === null ? fault.detail : `${fault.table}: ${fault.detail}`;
}
