/** A value's place: in the file, or in a `--set` on the command line. */
export type Place =
  | { readonly kind: "file"; readonly line: number; readonly column: number }
  | { readonly kind: "set"; readonly flag: string };

export interface MapNode {
  readonly kind: "map";
  readonly place: Place;
  readonly entries: Map<string, Entry>;
}

export interface Entry {
  readonly key: Place;
  readonly value: TreeNode;
  /** Whether the key was quoted: `"1"` is a text, 1 a number. */
  readonly isQuoted?: true;
}

export interface ListNode {
  readonly kind: "list";
  readonly place: Place;
  readonly items: TreeNode[];
}

export interface ScalarNode {
  readonly kind: "scalar";
  readonly place: Place;
  readonly value: string | number | boolean | null;
  /** As it was written, with references to variables and without quotes. */
  readonly written: string;
  readonly isQuoted: boolean;
  /** Whether it could not be parsed, which was already reported. */
  readonly isUnread?: true;
  /** Environment variables that are part of the value: then it is never shown. */
  readonly variables: readonly string[];
}

/** The contents of a YAML text, each part with its place. */
export type TreeNode = MapNode | ListNode | ScalarNode;

/** An error in a file, before the file is known. */
export interface TreeFault {
  readonly place: Place;
  /** Such as `gateway.budget.rps`; null for no key. */
  readonly key: string | null;
  /** The text there, if it may be shown. */
  readonly text: string | null;
  readonly message: string;
  readonly hint: string;
}

export type KeyPath = readonly (string | number)[];

/** A path in messages and `--set`: `after.exports.0.out`. */
export function keyText(path: KeyPath): string {
  return path.join(".");
}

/** The value as plain objects and lists. */
export function plainOf(node: TreeNode): unknown {
  switch (node.kind) {
    case "map":
      return Object.fromEntries([...node.entries].map(([key, { value }]) => [key, plainOf(value)]));
    case "list":
      return node.items.map(plainOf);
    case "scalar":
      return node.value;
  }
}

/** What is at a path; undefined if nothing is. */
export function nodeAt(root: TreeNode, path: KeyPath): TreeNode | undefined {
  let node: TreeNode | undefined = root;
  for (const step of path) {
    if (node?.kind === "map") node = node.entries.get(String(step))?.value;
    else if (node?.kind === "list") node = node.items[Number(step)];
    else return undefined;
  }
  return node;
}

/** The place to report for a path: its value, or the nearest enclosing one. */
export function placeAt(root: TreeNode, path: KeyPath): Place {
  const node = nodeAt(root, path);
  if (node !== undefined && !isNothing(node)) return node.place;
  return keyPlaceAt(root, path);
}

/** The place of the last key in a path, or the nearest enclosing one. */
export function keyPlaceAt(root: TreeNode, path: KeyPath): Place {
  for (let length = path.length; length > 0; length--) {
    const around = nodeAt(root, path.slice(0, length - 1));
    const key = around?.kind === "map" ? around.entries.get(String(path[length - 1]))?.key : undefined;
    const place = key ?? nodeAt(root, path.slice(0, length))?.place;
    if (place !== undefined) return place;
  }
  return root.place;
}

function isNothing(node: TreeNode): boolean {
  return node.kind === "scalar" && node.value === null;
}
