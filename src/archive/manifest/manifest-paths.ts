import { join } from "node:path";
import type { Layout } from "../layout.ts";
import type { Store } from "../storage/store.ts";

/**
 * The paths of all manifests, unread, or those in one instance folder. Anything misplaced where an instance's folder
 * belongs is for `misplacedInstances`.
 */
export async function manifestPaths(layout: Layout, store: Store, instance?: string): Promise<string[]> {
  const runs = `${layout.keyOf(layout.runsDir)}/`;
  const paths: string[] = [];
  for (const folder of await store.names(runs)) {
    if (!folder.endsWith("/") || (instance !== undefined && folder !== `${instance}/`)) continue;
    for (const entry of await store.names(`${runs}${folder}`)) {
      // a folder in a manifest's place must not hide its run: reading it reports the problem
      const name = entry.replace(/\/$/, "");
      if (isManifestName(name)) paths.push(join(layout.runsDir, folder, name));
    }
  }
  return paths;
}

export function isManifestName(name: string): boolean {
  return !name.startsWith(".") && name.endsWith(".json");
}
