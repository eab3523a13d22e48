import { basename, dirname } from "node:path/posix";
import { asideOwner } from "./fsync-files.ts";
import type { Store } from "./store.ts";

/** Removes leftovers of killed writers next to an object. Only if no other writer may be active. */
export async function removeLeftovers(store: Store, key: string): Promise<void> {
  const folder = dirname(key);
  const prefix = folder === "." ? "" : `${folder}/`;
  const left = (await store.names(prefix)).filter((name) => asideOwner(name) === basename(key));
  if (left.length > 0) await store.remove(left.map((name) => `${prefix}${name}`));
}
