import { join } from "node:path";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import { isPathName } from "../layout.ts";
import { asideOwner } from "../storage/fsync-files.ts";
import { entriesIn } from "../verify/verify-places.ts";

/** The folders of a run whose id cannot be determined. */
export interface LongIdRun {
  readonly folders: readonly string[];
}

/**
 * Every run with anything in the archive: a manifest, files, work, or its lock. Found by names in real folders;
 * shortened ids only by the manifest.
 */
export async function* runsAnywhere(archive: Archive): AsyncGenerator<RunRef | LongIdRun> {
  const { layout } = archive;
  const places = new Map<string, string[]>();
  const add = (instance: string, run: string, folder: string | null) => {
    if (!isPathName(instance) || !isPathName(run)) return;
    const key = `${instance}/${run}`;
    const folders = places.get(key) ?? [];
    if (folder !== null) folders.push(folder);
    places.set(key, folders);
  };
  const works = [...new Set([layout, layout.withoutScratch()])];
  const byFolder = [
    ...["data", "quarantine"].map((name) => join(layout.dir, name)),
    ...tableNames.map((name) => layout.tablesDir(name)),
    ...works.flatMap((place) => [place.pendingRoot, place.stagingRoot]),
  ];
  for (const root of byFolder) {
    for (const [instance, folder] of await foldersIn(root)) {
      for (const [run, own] of await foldersIn(folder)) add(instance, run, own);
    }
  }
  const byFile: [root: string, ending: RegExp][] = [
    [layout.runsDir, /\.json$/],
    [join(layout.dir, "cache"), /\.json$/],
    [layout.locksDir, /\.duckdb(?:\.wal)?$/],
  ];
  for (const [root, ending] of byFile) {
    for (const [instance, folder] of await foldersIn(root)) {
      for (const entry of await entriesIn(folder)) {
        const name = asideOwner(entry.name) ?? entry.name;
        if (entry.isFile() && ending.test(name)) add(instance, name.replace(ending, ""), null);
      }
    }
  }
  for (const [key, folders] of [...places].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [instance, name] = key.split("/") as [string, string];
    const [instanceId, runId] = [layout.idOf(instance), layout.idOf(name)];
    if (instanceId !== null && runId !== null) yield { instanceId, runId };
    else {
      const file = join(layout.runsDir, instance, `${name}.json`);
      // an unreadable one shows no id either
      yield (await archive.manifestIn(file).catch(() => null)) ?? { folders };
    }
  }
}

async function foldersIn(folder: string): Promise<[name: string, path: string][]> {
  const entries = (await entriesIn(folder)).filter((entry) => entry.isDirectory());
  return entries.map(({ name }) => [name, join(folder, name)]);
}
