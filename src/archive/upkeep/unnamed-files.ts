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

/** A file of ours in a run's folders of committed files that its manifest does not name. */
export interface UnnamedFile {
  readonly folder: "data" | "quarantine";
  readonly key: string;
  readonly name: string;
  /** What the manifest says of it, where it was named before. */
  readonly former: FormerFile | null;
  /** Nobody who began to read after this time can have met a manifest that names the file. */
  readonly seenUntil: Nanoseconds;
}

/**
 * The files of a run that its manifest does not name any more, or never named. `former` is what the manifest says of those
 * that commits replaced, and what the one before it said. Nobody has met a manifest that names one of them since the
 * manifest was put in its place; one that was replaced before that, not since its hour was over, either.
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

/** Readers that have an archive's files, by when they began. */
export interface Readers {
  /** Whether one of them may have begun by this time. */
  since(until: Nanoseconds): boolean;
}

/** A file system's clock lags behind the system's by a tick, and a lock's maker needs a moment to take it. */
const slackMs = 10_000;

/**
 * Whoever reads an archive now, told by locks. To be asked after the manifest was read whose files are to go: a reader that
 * this does not meet takes its lock later, reads manifests later still, and finds that one, or the next.
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
    // one that began in the future shows that the clock was set back, and that times say nothing
    since: (until) => began.some((ms) => ms <= Number(until / 1_000_000n) + slackMs || ms > latestMs),
  };
}

/** Takes the lock of a reader that is gone; null where it is not, or may only be about to take it, or nobody can try. */
export async function lockOfReader(layout: Layout, file: string): Promise<AsyncDisposable | null> {
  const beganMs = layout.readingSince(basename(file));
  if (beganMs === null || Date.now() - beganMs < slackMs) return null;
  try {
    return await lockFile(layout, file, "reads this archive", {});
  } catch (error) {
    // cut off while it was made: there is no room to make it again, or it is none of ours
    const isNobodys =
      error instanceof RunvaultError && (error.code === "archive_damaged" || error.code === "storage_full");
    return isNobodys ? { [Symbol.asyncDispose]: async () => {} } : null;
  }
}
