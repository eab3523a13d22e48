import { type KeyPath, keyText, type TreeFault, type TreeNode } from "../../model/yaml/tree.ts";

/** Parts of a job file that only an execution needs. */
const forExecutions: ReadonlySet<unknown> = new Set(["notify", "metrics", "after"]);

/** Stands in for an unset gateway address; host names below `invalid` never exist. */
const noAddress = "http://address-not-set.invalid";

/**
 * A job file for commands that use neither gateway nor notifiers. Parts that only an execution needs are left out if a
 * variable in them is unset, so that a job's archive can be read without the job's secrets.
 */
export function withoutUnset(
  tree: TreeNode,
  faults: readonly TreeFault[],
): { readonly tree: TreeNode; readonly faults: readonly TreeFault[] } {
  if (tree.kind !== "map") return { tree, faults };
  const left: KeyPath[] = [];
  const entries = [...tree.entries].flatMap(([key, entry]) => {
    const { value } = entry;
    if (forExecutions.has(key) && hasUnset(value)) {
      left.push([key]);
      return [];
    }
    if (key !== "gateway" || value.kind !== "map") return [[key, entry] as const];
    const own = [...value.entries].flatMap(([name, inside]) => {
      if (!hasUnset(inside.value)) return [[name, inside] as const];
      left.push([key, name]);
      if (name !== "url") return [];
      const address: TreeNode = {
        ...{ kind: "scalar", place: inside.value.place, value: noAddress },
        ...{ written: "", isQuoted: false, variables: [] },
      };
      return [[name, { ...inside, value: address }] as const];
    });
    return [[key, { ...entry, value: { ...value, entries: new Map(own) } }] as const];
  });
  const below = left.map(keyText);
  const isLeft = (key: string | null) =>
    key !== null && below.some((one) => key === one || key.startsWith(`${one}.`));
  return {
    tree: { ...tree, entries: new Map(entries) },
    faults: faults.filter(({ key }) => !isLeft(key)),
  };
}

function hasUnset(node: TreeNode): boolean {
  if (node.kind === "scalar") return node.isUnread === true;
  const parts = node.kind === "list" ? node.items : [...node.entries.values()].map(({ value }) => value);
  return parts.some(hasUnset);
}
