import { join } from "node:path";
import type { Layout } from "./layout.ts";
import type { Store } from "./storage/store.ts";

/** Where the manifests of all runs are, unread. Links in the place of instances' folders are for `linkedInstances`. */
export async function manifestPaths(layout: Layout, store: Store): Promise<string[]> {
  const runs = `${layout.keyOf(layout.runsDir)}/`;
  const paths: string[] = [];
  for (const instance of await store.names(runs)) {
    if (!instance.endsWith("/")) continue;
    for (const name of await store.names(`${runs}${instance}`)) {
      if (!name.startsWith(".") && name.endsWith(".json")) paths.push(join(layout.runsDir, instance, name));
    }
  }
  return paths;
}
