import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import type { RunRef } from "../../model/source.ts";
import { notArchived } from "../../model/usual-errors.ts";

/**
 * Manifests of the named runs, each once, or of all if none is named. Throws `not_archived` for a run that is not in
 * the archive.
 */
export async function manifestsOf(archive: Archive, runs: readonly RunRef[]): Promise<Manifest[]> {
  if (runs.length === 0) return archive.manifests();
  const found: Manifest[] = [];
  const once = new Map(runs.map((run) => [JSON.stringify([run.instanceId, run.runId]), run]));
  for (const run of once.values()) {
    const manifest = await archive.manifest(run);
    if (manifest === null) throw notArchived(run);
    found.push(manifest);
  }
  return found;
}
