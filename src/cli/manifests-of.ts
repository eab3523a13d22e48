import type { Archive } from "../archive/archive.ts";
import type { Manifest } from "../archive/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";

/** Manifests of the runs named, each once, or of every run when none is. Throws `not_archived` for a run the archive has not. */
export async function manifestsOf(archive: Archive, runs: readonly RunRef[]): Promise<Manifest[]> {
  if (runs.length === 0) return archive.manifests();
  const found: Manifest[] = [];
  const once = new Map(runs.map((run) => [JSON.stringify([run.instanceId, run.runId]), run]));
  for (const run of once.values()) {
    const manifest = await archive.manifest(run);
    if (manifest === null) {
      throw new RunvaultError("not_archived", "the archive does not hold this run", {
        place: { instance: run.instanceId, run: run.runId },
        hint: "`runvault runs` lists what it holds.",
      });
    }
    found.push(manifest);
  }
  return found;
}
