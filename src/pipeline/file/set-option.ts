import type { MapNode, Place, TreeFault, TreeNode } from "../../model/yaml/tree.ts";
import { readYamlTree } from "../../model/yaml/yaml-tree.ts";

/** A parsed `--set KEY=VALUE`. */
export interface SetOption {
  readonly place: Place;
  readonly path: readonly string[];
  readonly value: TreeNode;
}

/** Parses `KEY=VALUE`: a dotted path, and a value in the syntax of the file. */
export function readSet(text: string): {
  readonly set: SetOption | null;
  readonly faults: readonly TreeFault[];
} {
  const [, keys, value = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  // only the key is shown, because the value may be a secret
  const place: Place = { kind: "set", flag: `--set ${keys ?? text}` };
  const fault = (message: string, hint: string): TreeFault => ({
    place,
    key: null,
    text: null,
    message,
    hint,
  });
  if (keys === undefined || !/^[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*$/.test(keys)) {
    return {
      set: null,
      faults: [fault("this is not KEY=VALUE", "Give a key with dots, such as --set gateway.budget.rps=5.")],
    };
  }
  const { tree, faults } = readYamlTree(value, place);
  if (tree === null && faults.length === 0) {
    return { set: null, faults: [fault("there is no value after the =", "Give a value after the =.")] };
  }
  return { set: tree === null ? null : { place, path: keys.split("."), value: tree }, faults };
}

/** Puts the value of a `--set` into a tree; returns an error if the tree has no such place. */
export function applySet(root: MapNode, { place, path, value }: SetOption): TreeFault | null {
  let node: TreeNode = root;
  for (const [index, step] of path.entries()) {
    const isLast = index === path.length - 1;
    if (node.kind === "scalar") {
      return {
        place,
        key: null,
        text: null,
        message: `${path.slice(0, index).join(".")} has no keys in it`,
        hint: "Set the key itself.",
      };
    }
    if (node.kind === "list") {
      const at = /^\d{1,4}$/.test(step) ? Number(step) : Number.NaN;
      if (Number.isNaN(at) || at > node.items.length || (!isLast && at === node.items.length)) {
        return {
          place,
          key: null,
          text: null,
          message: `${path.slice(0, index).join(".")} is a list of ${node.items.length}, and has no ${step}`,
          hint: "Count its parts from 0, or set the whole list.",
        };
      }
      if (isLast) node.items[at] = value;
      else node = node.items[at]!;
      continue;
    }
    const inside: TreeNode | undefined = node.entries.get(step)?.value;
    if (isLast) node.entries.set(step, { key: place, value });
    else if (inside !== undefined && !(inside.kind === "scalar" && inside.value === null)) node = inside;
    else {
      const made: MapNode = { kind: "map", place, entries: new Map() };
      node.entries.set(step, { key: place, value: made });
      node = made;
    }
  }
  return null;
}
