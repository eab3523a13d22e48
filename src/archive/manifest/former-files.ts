import { type Nanoseconds, nsPerSecond, parseTime } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import type { FormerFile, Manifest } from "./manifest.ts";
import { everyFile } from "./manifest-files.ts";
import { isPresent, provenView } from "./table-view.ts";

/** How long files that a commit replaced stay for whoever began to read them, or has been told of them. */
const keptNs = 3600n * nsPerSecond;

/** Whether a replaced file is still kept, whoever reads it. */
export function isKept(former: FormerFile, now: Nanoseconds): boolean {
  return now < keptUntil(former);
}

/** When its hour is over. */
export function keptUntil({ replacedAt }: FormerFile): Nanoseconds {
  return parseTime(replacedAt) + keptNs;
}

/** What a commit of `next` over `before` keeps: what it replaces itself, and what others replaced within the hour. */
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

/** What replaced files take of the disk: they are there until the first job after their hour, or until garbage is collected. */
export async function formerBytes({ layout, store }: Archive, manifest: Manifest): Promise<number> {
  let bytes = 0;
  for (const { folder, file } of manifest.former ?? []) {
    bytes += (await store.head(layout.committedKey(manifest, folder, file)))?.size ?? 0;
  }
  return bytes;
}
