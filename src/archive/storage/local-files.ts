import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";

/** Local paths of a run's committed files, in order, for DuckDB. Throws ENOENT if one is missing. */
export async function localFiles(
  { layout, store }: Pick<Archive, "layout" | "store">,
  run: RunRef,
  files: readonly { readonly file: string }[],
): Promise<string[]> {
  return await Promise.all(files.map(({ file }) => store.localFile(layout.committedKey(run, "data", file))));
}
