import { isDeepStrictEqual } from "node:util";
import { RunvaultError } from "../../model/error.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { filesOf } from "../manifest/manifest-files.ts";

/**
 * Explains unreadable files of these manifests: `history_query_failed`, worth a retry, if later commits removed them;
 * null if none did, so the archive has another fault.
 */
export async function supersededGeneration(
  archive: Pick<Archive, "layout" | "store" | "manifests">,
  read: readonly Manifest[],
  cause: unknown,
): Promise<RunvaultError | null> {
  const { layout, store } = archive;
  const present = new Map(
    (await archive.manifests()).map((manifest) => [layout.manifestFile(manifest), manifest]),
  );
  for (const manifest of read) {
    const now = present.get(layout.manifestFile(manifest));
    if (now !== undefined && isDeepStrictEqual(now, manifest)) continue;
    // removed and archived again: its file names started over
    const isAnew = now !== undefined && now.generation <= manifest.generation;
    const kept = now === undefined ? new Set<string>() : filesOf(now).data;
    for (const name of await store.names(layout.committedKey(manifest, "data")))
      kept.add(name.replace(/\/$/, ""));
    for (const file of filesOf(manifest).data) {
      if (kept.has(file) && !isAnew) continue;
      return new RunvaultError(
        "history_query_failed",
        "a job committed a new generation of the run while it was being read",
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
