import { join } from "node:path";
import type { Layout } from "../layout.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { everyFile } from "../manifest/manifest-files.ts";

/** The files that a verification reads; of others it only checks presence and size. */
export interface Sample {
  readonly has: (path: string) => boolean;
  readonly files: number;
  readonly bytes: number;
  /** Drawn from so many files and bytes. */
  readonly ofFiles: number;
  readonly ofBytes: number;
}

/**
 * Draws files at random until they have this share of all bytes, at least one. Each time others are drawn, so five
 * percent a night covers most of an archive within a few months.
 */
export function drawSample(layout: Layout, manifests: readonly Manifest[], share: number): Sample {
  const all = manifests.flatMap((manifest) => {
    const folders = { data: layout.dataDir(manifest), quarantine: layout.quarantineDir(manifest) };
    return everyFile(manifest).map(({ folder, file, storedBytes }) => ({
      path: join(folders[folder], file),
      bytes: storedBytes,
    }));
  });
  const ofBytes = all.reduce((sum, { bytes }) => sum + bytes, 0);
  const drawn = new Set<string>();
  let bytes = 0;
  for (const file of shuffled(all)) {
    if (drawn.size > 0 && bytes >= ofBytes * share) break;
    drawn.add(file.path);
    bytes += file.bytes;
  }
  return { has: (path) => drawn.has(path), files: drawn.size, bytes, ofFiles: all.length, ofBytes };
}

function shuffled<T>(items: readonly T[]): T[] {
  const left = [...items];
  for (let last = left.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [left[last], left[other]] = [left[other]!, left[last]!];
  }
  return left;
}
