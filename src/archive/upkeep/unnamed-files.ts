import { basename, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import type { Layout } from "../layout.ts";
import { lockFile } from "../lock.ts";
import { keptUntil } from "../manifest/former-files.ts";
import type { FormerFile, Manifest } from "../manifest/manifest.ts";
import { filesOf } from "../manifest/manifest-files.ts";
import { namesIn } from "../storage/names-in.ts";
import { ownFiles } from "../storage/own-names.ts";

/** A file of ours in a run's committed folders that its manifest does not name. */
export interface UnnamedFile {
  readonly folder: "data" | "quarantine";
  readonly key: string;
  readonly name: string;
  /** The manifest's entry, if it was named before. */
  readonly former: FormerFile | null;
  /** No reader that began after this time can have seen a manifest that names the file. */
  readonly seenUntil: Nanoseconds;
}

/**
 * Files of a run that its manifest no longer names, or never named. `former` has the manifest's entries for files that
 * commits replaced, and its predecessor's. Since the manifest was put in place, nobody has seen one that names these
 * files; for files replaced earlier, nobody has since their hour was over.
 */
export async function unnamedFiles(
  { layout, store }: Pick<Archive, "layout" | "store">,
  manifest: Manifest,
  former: readonly FormerFile[],
): Promise<UnnamedFile[]> {
  const named = filesOf(manifest);
  const formers = new Map(former.map((one) => [one.file, one]));
  const found: Omit<UnnamedFile, "seenUntil">[] = [];
  for (const folder of ["data", "quarantine"] as const) {
    const prefix = layout.committedKey(manifest, folder);
    for (const name of await store.names(prefix)) {
      if (!ownFiles[folder](name) || named[folder].has(name)) continue;
      found.push({ folder, key: `${prefix}${name}`, name, former: formers.get(name) ?? null });
    }
  }
  if (found.length === 0) return [];
  const committed = await store.head(layout.keyOf(layout.manifestFile(manifest)));
  const at = committed?.modifiedAt ?? BigInt(Date.now()) * 1_000_000n;
  return found.map((one) => {
    const until = one.former === null ? at : keptUntil(one.former);
    return { ...one, seenUntil: until < at ? until : at };
  });
}

/** Current readers of an archive's files, by start time. */
export interface Readers {
  /** Whether one of them may have begun by this time. */
  since(until: Nanoseconds): boolean;
}

/** A file system's clock lags a tick behind the system's, and a lock's creator needs a moment to take it. */
const slackMs = 10_000;

/**
 * The current readers of an archive, by their locks. Ask after reading the manifest whose files are to go: a reader not
 * seen here takes its lock later, reads manifests later still, and finds that one or a newer one.
 */
export async function readersOf(layout: Layout): Promise<Readers> {
  const began: number[] = [];
  for (const name of await namesIn(layout.locksDir)) {
    const beganMs = layout.readingSince(name);
    if (beganMs === null) continue;
    await using lock = await lockOfReader(layout, join(layout.locksDir, name));
    if (lock === null) began.push(beganMs);
  }
  const latestMs = Date.now() + slackMs;
  return {
    // a start in the future shows that the clock was set back, so times say nothing
    since: (until) => began.some((ms) => ms <= Number(until / 1_000_000n) + slackMs || ms > latestMs),
  };
}

/**
 * Takes the lock of a reader that is gone; null if it is not, or may be about to take it, or the lock cannot be tried.
 */
export async function lockOfReader(layout: Layout, file: string): Promise<AsyncDisposable | null> {
  const beganMs = layout.readingSince(basename(file));
  if (beganMs === null || Date.now() - beganMs < slackMs) return null;
  try {
    return await lockFile(layout, file, "reads this archive", {});
  } catch (error) {
    // truncated on creation: there is no room to complete it, or it is not ours
    const isNobodys =
      error instanceof RunvaultError && (error.code === "archive_damaged" || error.code === "storage_full");
    return isNobodys ? { [Symbol.asyncDispose]: async () => {} } : null;
  }
}
