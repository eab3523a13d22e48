import { dirname, resolve } from "node:path";
import { shownText } from "../../model/yaml/issue-faults.ts";
import {
  type KeyPath,
  keyPlaceAt,
  keyText,
  nodeAt,
  type Place,
  placeAt,
  type TreeFault,
  type TreeNode,
} from "../../model/yaml/tree.ts";

/** Collects the faults of a profile as a whole, after each value has been checked by itself. */
export class CompileContext {
  readonly faults: TreeFault[] = [];
  readonly tree: TreeNode;
  readonly #fileOf: (place: Place) => string;
  readonly #wrong: readonly string[];
  readonly #seen = new Set<string>();

  /** `wrong` has paths that are already reported and removed; their absence is not a further fault. */
  constructor(tree: TreeNode, fileOf: (place: Place) => string, wrong: readonly KeyPath[] = []) {
    this.tree = tree;
    this.#fileOf = fileOf;
    this.#wrong = wrong.map((path) => `${keyText(path)}.`);
  }

  /** Reports a fault at a path, once. The message starts with the path. */
  fault(path: KeyPath, message: string, hint: string): void {
    const node = nodeAt(this.tree, path);
    const isScalar = node?.kind === "scalar";
    const place = isScalar || path.length === 0 ? placeAt(this.tree, path) : keyPlaceAt(this.tree, path);
    const key = keyText(path);
    const id = `${key} ${message}`;
    if (this.#seen.has(id) || this.#wrong.some((wrong) => `${key}.`.startsWith(wrong))) return;
    this.#seen.add(id);
    const text = isScalar ? shownText(node.written) : null;
    this.faults.push({ place, key, text, message: `${key} ${message}`.trim(), hint });
  }

  has(path: KeyPath): boolean {
    return nodeAt(this.tree, path) !== undefined;
  }

  /** The first of these paths that exists, or else the last. */
  firstOf(...paths: readonly KeyPath[]): KeyPath {
    return paths.find((path) => this.has(path)) ?? paths.at(-1)!;
  }

  /** Resolves a file's path from the folder of the profile file that defines this key. */
  resolve(path: KeyPath, name: string): string {
    return resolve(dirname(this.#fileOf(placeAt(this.tree, path))), name);
  }
}
