import { type Nanoseconds, nsPerSecond, parseTime } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import type { FormerFile, Manifest } from "./manifest.ts";
import { everyFile } from "./manifest-files.ts";
import { isPresent, provenView } from "./table-view.ts";

/** How long replaced files stay for readers that have opened or listed them. */
const keptNs = 3600n * nsPerSecond;

/** Whether a replaced file must still be kept for readers. */
export function isKept(former: FormerFile, now: Nanoseconds): boolean {
  return now < keptUntil(former);
}

/** When its hour is over. */
export function keptUntil({ replacedAt }: FormerFile): Nanoseconds {
  return parseTime(replacedAt) + keptNs;
}

/**
 * The files that a commit of `next` over `before` keeps: those that it replaces, and those replaced within the last
 * hour.
 */
export function formerFiles(before: Manifest | null, next: Manifest): FormerFile[] {
  if (before === null) return [];
  const named = new Set(everyFile(next).map(({ file }) => file));
  const shown = new Set(
    Object.values(before.tables).flatMap((table) => {
      const view = provenView(table);
      return isPresent(view) ? view.parquet.map(({ file }) => file) : [];
    }),
  );
  const now = parseTime(next.committedAt);
  return [
    ...(before.former ?? []).filter((former) => isKept(former, now)),
    ...everyFile(before).map((file) => ({
      ...file,
      proven: shown.has(file.file),
      replacedAt: next.committedAt,
    })),
  ].filter(({ file }) => !named.has(file));
}

/** Disk space of replaced files: they exist until the first job after their hour, or until garbage is collected. */
export async function formerBytes({ layout, store }: Archive, manifest: Manifest): Promise<number> {
  let bytes = 0;
  for (const { folder, file } of manifest.former ?? []) {
    bytes += (await store.head(layout.committedKey(manifest, folder, file)))?.size ?? 0;
  }
  return bytes;
}
