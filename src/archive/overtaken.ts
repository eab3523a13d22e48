import { stat } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { RunvaultError } from "../model/error.ts";
import type { Archive } from "./archive.ts";
import { isMissing } from "./durable.ts";
import type { Manifest } from "./manifest.ts";
import { filesOf } from "./manifest-files.ts";

/**
 * What it means that files of these manifests cannot be read: `history_query_failed`, worth a retry, where later
 * commits took files of one away; null where none did, and the archive has another fault.
 */
export async function overtaken(
  archive: Pick<Archive, "layout" | "manifests">,
  read: readonly Manifest[],
  cause: unknown,
): Promise<RunvaultError | null> {
  const { layout } = archive;
  const present = new Map(
    (await archive.manifests()).map((manifest) => [layout.manifestFile(manifest), manifest]),
  );
  for (const manifest of read) {
    const now = present.get(layout.manifestFile(manifest));
    if (now !== undefined && isDeepStrictEqual(now, manifest)) continue;
    // removed and archived again: the names of files began anew, too
    const isAnew = now !== undefined && now.generation <= manifest.generation;
    const kept = now === undefined ? new Set<string>() : filesOf(now).data;
    for (const file of filesOf(manifest).data) {
      const isKept = kept.has(file) || (await isThere(join(layout.dataDir(manifest), file)));
      if (isKept && !isAnew) continue;
      return new RunvaultError(
        "history_query_failed",
        "a job committed a new generation of the run while it was read",
        {
          cause,
          place: { instance: manifest.instanceId, run: manifest.runId },
          hint: "Ask again: the answer will come from the new generation.",
        },
      );
    }
  }
  return null;
}

async function isThere(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw RunvaultError.from(error, { place: { file } });
  }
}
