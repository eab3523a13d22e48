import { realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type FileFault, fileFault } from "../../model/yaml/file-fault.ts";
import { readText } from "../../model/yaml/read-text.ts";
import { type MapNode, nodeAt, type Place, type TreeFault, type TreeNode } from "../../model/yaml/tree.ts";
import { readYamlTree } from "../../model/yaml/yaml-tree.ts";
import { mergeTrees } from "./merge-trees.ts";

/** The name of the built-in contract, in place of a file's. */
export const defaultName = "default";

/** A profile's tree, merged with what it extends; null if one of the files cannot be read. */
export interface ProfileTree {
  readonly tree: TreeNode | null;
  readonly faults: readonly FileFault[];
  /** The file that contains this place. */
  fileOf(place: Place): string;
}

export interface ProfileTreeOptions {
  /** The text of the profile `default`. */
  readonly defaultText: () => string;
}

/** Reads a profile's file, and those that it extends, as one tree. Never throws for a file's contents. */
export async function readProfileTree(file: string, options: ProfileTreeOptions): Promise<ProfileTree> {
  const reading = new Reading(file, options);
  const tree = await reading.read(file, []);
  return { tree, faults: reading.faults, fileOf: (place) => reading.files.get(place) ?? file };
}

class Reading {
  readonly faults: FileFault[] = [];
  readonly files = new Map<Place, string>();
  readonly #file: string;
  readonly #options: ProfileTreeOptions;

  constructor(file: string, options: ProfileTreeOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** `chain` has the files that extend this one, with real path and given name. */
  async read(file: string, chain: readonly FileOfChain[]): Promise<TreeNode | null> {
    const content = file === defaultName && chain.length > 0 ? null : await readText(file, "a profile");
    const text =
      content === null ? this.#options.defaultText() : "fault" in content ? content.fault : content.text;
    if (typeof text !== "string") {
      this.#tell(text, file);
      return null;
    }
    const tree = this.#treeOf(text, file);
    if (tree === null) return null;
    this.#remember(tree, file);
    const base = tree.kind === "map" ? nodeAt(tree, ["extends"]) : undefined;
    if (content === null || base?.kind !== "scalar" || typeof base.value !== "string" || base.value === "") {
      return tree;
    }
    const here: FileOfChain = { file, real: await realOf(file) };
    const baseFile = base.value === defaultName ? defaultName : besides(file, base.value);
    const all = [...chain, here];
    const baseReal = baseFile === defaultName ? defaultName : await realOf(baseFile);
    const start = all.findIndex(({ real }) => real === baseReal);
    if (start >= 0) {
      const names = [...all.slice(start).map((part) => part.file), all[start]!.file];
      this.#tell(
        {
          place: base.place,
          key: "extends",
          text: null,
          message: `the profiles extend each other in a circle: ${names.join(" → ")}`,
          hint: "Remove `extends` from one of them, or let it extend default.",
        },
        file,
      );
      return null;
    }
    if (baseFile !== defaultName) {
      const there = await readText(baseFile, "a profile");
      if ("fault" in there && there.fault.place.kind === "file" && there.fault.place.line === 0) {
        const message = `extends: ${there.fault.message.replace(/^the file/, `the file ${baseFile}`)}`;
        this.#tell({ ...there.fault, place: base.place, key: "extends", message }, file);
        return null;
      }
    }
    const below = await this.read(baseFile, all);
    return below === null ? null : mergeTrees(withoutOwnKeys(below), tree);
  }

  #treeOf(text: string, file: string): TreeNode | null {
    const hasMark = text.startsWith("\ufeff");
    const { tree, faults } = readYamlTree(hasMark ? text.slice(1) : text);
    if (hasMark) {
      this.#tell(
        firstLine("begins with a byte order mark", "Save the file as UTF-8 without a byte order mark."),
        file,
      );
    }
    for (const fault of faults) this.#tell(fault, file);
    if (tree === null && faults.length === 0) {
      this.#tell(firstLine("is empty", "Start from the output of `runvault profile show default`."), file);
    }
    return tree;
  }

  #remember(node: TreeNode, file: string): void {
    if (file === this.#file) return;
    this.files.set(node.place, file);
    if (node.kind === "list") for (const item of node.items) this.#remember(item, file);
    if (node.kind !== "map") return;
    for (const { key, value } of node.entries.values()) {
      this.files.set(key, file);
      this.#remember(value, file);
    }
  }

  #tell(fault: TreeFault, file: string): void {
    this.faults.push(fileFault(fault, file));
  }
}

interface FileOfChain {
  readonly file: string;
  readonly real: string;
}

/** A path relative to a file's folder, in the same form as the file's own. */
function besides(file: string, path: string): string {
  const folder = dirname(file);
  return folder === "." || path.startsWith("/") ? path : `${folder}/${path}`;
}

async function realOf(file: string): Promise<string> {
  return await realpath(file).catch(() => resolve(file));
}

/** Removes the keys that files which extend this one do not inherit. */
function withoutOwnKeys(tree: TreeNode): TreeNode {
  if (tree.kind !== "map") return tree;
  const entries: MapNode["entries"] = new Map(tree.entries);
  for (const key of ["profile", "name", "extends"]) entries.delete(key);
  return { ...tree, entries };
}

function firstLine(message: string, hint: string): TreeFault {
  const place = { kind: "file", line: 1, column: 1 } as const;
  return { place, key: null, text: null, message: `the file ${message}`, hint };
}
