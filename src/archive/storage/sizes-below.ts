import type { Store } from "./store.ts";

/** By key, the sizes in bytes of the objects whose keys begin with a prefix. */
export async function sizesBelow(store: Store, prefix: string): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, size } of store.list(prefix)) sizes.set(key, size);
  return sizes;
}
