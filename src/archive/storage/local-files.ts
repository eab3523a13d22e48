import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";

/** Paths on this machine of committed files of a run, in their order, for DuckDB. Throws ENOENT where one is missing. */
export async function localFiles(
  { layout, store }: Pick<Archive, "layout" | "store">,
  run: RunRef,
  files: readonly { readonly file: string }[],
): Promise<string[]> {
  return await Promise.all(files.map(({ file }) => store.localFile(layout.committedKey(run, "data", file))));
}
