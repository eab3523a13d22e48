import type { KeyPath, MapNode, TreeNode } from "../../model/yaml/tree.ts";

/** Keys whose values are one unit: a profile that sets one replaces all of it. */
const wholeKeys: ReadonlySet<string> = new Set(["pages", "words", "fixed", "dropped", "given", "rpc"]);

/** Applies one profile on top of another: maps are merged by key, everything else is replaced. */
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

/** Whether this is a column, a header, a key or the form of rows, which are never merged. */
function isWhole(path: KeyPath): boolean {
  const [last, before] = [path.at(-1), path.at(-2)];
  if (path.length === 0) return false;
  if (before === "columns" || before === "headers" || before === "keys") return true;
  if (last === "rows") return path.length > 1;
  if (path[0] === "documents" && path.length > 2) return last !== "parameters" && last !== "times";
  return wholeKeys.has(String(last));
}
