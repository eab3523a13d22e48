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

/** A run as the place of its manifest has it. */
export interface FoundRun {
  /** Where the manifest cannot be read, the ids that its path names. */
  readonly run: RunRef;
  readonly file: string;
  readonly manifest: Manifest | null;
  /** What is wrong with the manifest; null where nothing is. */
  readonly damage: Damage | null;
}

/** Why a manifest cannot be used, where, and what to do about it. */
export interface Damage {
  readonly message: string;
  /** The manifest, or the folder on its path that is none. */
  readonly file: string;
  readonly hint: string;
}

/** A run, or all runs of an instance. */
export type RunChoice = RunRef | { readonly instanceId: string; readonly runId?: never };

/** The runs chosen, or all, with those whose manifest is damaged. Throws `not_archived` for one that is not there. */
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
  // in the place of its folder may be something else
  await requireRealFolder(
    archive.layout,
    join(archive.layout.runsDir, archive.layout.instanceFolder(instanceId)),
  );
  throw instanceNotArchived(instanceId);
}

/** Every manifest, or those of an instance, and those behind a link in its place: of their runs it is told that they are damaged. */
async function pathsIn({ layout, store }: Archive, instance?: string): Promise<string[]> {
  const paths = await manifestPaths(layout, store, instance);
  for (const { folder } of await misplacedInstances(layout)) {
    if (instance !== undefined && folder !== instance) continue;
    const names = (await namesIn(join(layout.runsDir, folder))).filter(isManifestName);
    paths.push(...names.map((name) => join(layout.runsDir, folder, name)));
  }
  return paths.sort();
}

/** The run whose manifest has this path; none where it was removed since it was listed. */
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

/** The damage that a reader of a manifest threw; any other error is thrown on. */
function damageIn(error: unknown, file: string): Damage {
  const message = damageOf(error);
  const { place, hint = usualHints.archive_damaged! } = error as RunvaultError;
  return { message, file: place.file ?? file, hint };
}

/**
 * The runs chosen, or all, as `foundRuns` has them, where a manifest that contradicts itself is damaged, too: its hash is
 * nobody's word for what it says. For whoever tells people what is COMPLETE, or acts on that.
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

/** The first thing in a manifest that cannot be so; null where there is none. */
function contradictionIn(manifest: Manifest): string | null {
  const list = new CheckList(manifest, "");
  checkManifest(list, manifest);
  const fault = list.checks.find(({ level }) => level === "damaged");
  if (fault === undefined) return null;
  return fault.table === null ? fault.detail : `${fault.table}: ${fault.detail}`;
}
