import { join } from "node:path";
import type { Layout } from "../layout.ts";
import type { Store } from "../storage/store.ts";

/**
 * Where the manifests of all runs are, unread, or of those of the instance whose folder has this name. What stands in the
 * place of an instance's folder is for `misplacedInstances`.
 */
export async function manifestPaths(layout: Layout, store: Store, instance?: string): Promise<string[]> {
  const runs = `${layout.keyOf(layout.runsDir)}/`;
  const paths: string[] = [];
  for (const folder of await store.names(runs)) {
    if (!folder.endsWith("/") || (instance !== undefined && folder !== `${instance}/`)) continue;
    for (const entry of await store.names(`${runs}${folder}`)) {
      // a folder in the place of a manifest is damage, which whoever reads it is told
      const name = entry.replace(/\/$/, "");
      if (isManifestName(name)) paths.push(join(layout.runsDir, folder, name));
    }
  }
  return paths;
}

export function isManifestName(name: string): boolean {
  return !name.startsWith(".") && name.endsWith(".json");
}
