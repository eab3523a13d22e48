import type { KeyPath, MapNode, TreeNode } from "../../model/yaml/tree.ts";

/** Keys whose values are one thing, wherever they stand: a profile that has them again has them anew. */
const wholeKeys: ReadonlySet<string> = new Set(["pages", "words", "fixed", "dropped", "given", "rpc"]);

/** What one profile says of another: maps are gone through key by key, and all else stands in the place of what was there. */
export function mergeTrees(base: TreeNode, over: TreeNode, path: KeyPath = []): TreeNode {
  if (base.kind !== "map" || over.kind !== "map" || isWhole(path)) return over;
  const entries: MapNode["entries"] = new Map(base.entries);
  for (const [key, entry] of over.entries) {
    const before = base.entries.get(key);
    entries.set(
      key,
      before === undefined
        ? entry
        : { ...entry, value: mergeTrees(before.value, entry.value, [...path, key]) },
    );
  }
  return { ...over, entries };
}

/** A column, a header, a key, the form of rows: never merged into. */
function isWhole(path: KeyPath): boolean {
  const [last, before] = [path.at(-1), path.at(-2)];
  if (path.length === 0) return false;
  if (before === "columns" || before === "headers" || before === "keys") return true;
  if (last === "rows") return path.length > 1;
  if (path[0] === "documents" && path.length > 2) return last !== "parameters" && last !== "times";
  return wholeKeys.has(String(last));
}
