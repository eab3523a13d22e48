import { join } from "node:path";
import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import { instanceNotArchived, notArchived } from "../model/usual-errors.ts";
import type { Archive } from "./archive.ts";
import { mostBytes } from "./archive-file.ts";
import type { Manifest } from "./manifest.ts";
import { parseManifest } from "./parse-manifest.ts";
import { namesIn } from "./verify-files.ts";
import { damageOf } from "./verify-report.ts";

/** A run as the place of its manifest has it. */
export interface FoundRun {
  /** Where the manifest cannot be read, the ids that its path names. */
  readonly run: RunRef;
  readonly file: string;
  readonly manifest: Manifest | null;
  /** What is wrong with the manifest; null where nothing is. */
  readonly damage: string | null;
}

/** A run, or all runs of an instance. */
export type RunChoice = RunRef | { readonly instanceId: string; readonly runId?: never };

/** The runs chosen, or all, with those whose manifest is damaged. Throws `not_archived` for one that is not there. */
export async function* foundRuns(
  archive: Archive,
  chosen: readonly RunChoice[] = [],
): AsyncGenerator<FoundRun> {
  if (chosen.length === 0) {
    for (const folder of await namesIn(archive.layout.runsDir)) yield* runsIn(archive, folder);
  }
  for (const { instanceId, runId } of chosen) {
    if (runId === undefined) yield* runsOf(archive, instanceId);
    else yield await foundRun(archive, { instanceId, runId });
  }
}

async function* runsOf(archive: Archive, instanceId: string): AsyncGenerator<FoundRun> {
  let isAny = false;
  for await (const found of runsIn(archive, archive.layout.instanceFolder(instanceId))) {
    isAny = true;
    yield found;
  }
  if (isAny) return;
  throw instanceNotArchived(instanceId);
}

/** The runs of the instances whose folder has this name. */
async function* runsIn({ layout, store }: Archive, folder: string): AsyncGenerator<FoundRun> {
  for (const name of await namesIn(join(layout.runsDir, folder))) {
    if (name.startsWith(".") || !name.endsWith(".json")) continue;
    const file = join(layout.runsDir, folder, name);
    const named = { instanceId: idOf(folder), runId: idOf(name.slice(0, -".json".length)) };
    try {
      const bytes = await store.get(layout.keyOf(file), mostBytes.manifest);
      // removed since it was listed
      if (bytes === null) continue;
      const manifest = parseManifest(bytes.toString("utf8"), file);
      const run = { instanceId: manifest.instanceId, runId: manifest.runId };
      if (layout.manifestFile(run) === file) {
        yield { run, file, manifest, damage: null };
        continue;
      }
      const damage = `this is the manifest of ${run.instanceId}/${run.runId}, which belongs in another place`;
      yield { run: named, file, manifest: null, damage };
    } catch (error) {
      const damage = damageOf(RunvaultError.from(error, { place: { file } }));
      yield { run: named, file, manifest: null, damage };
    }
  }
}

async function foundRun(archive: Archive, run: RunRef): Promise<FoundRun> {
  const file = archive.layout.manifestFile(run);
  try {
    const manifest = await archive.manifest(run);
    if (manifest === null) throw notArchived(run);
    return { run, file, manifest, damage: null };
  } catch (error) {
    return { run, file, manifest: null, damage: damageOf(error) };
  }
}

function idOf(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
