import { relative, resolve, sep } from "node:path";
import { shownText } from "../../model/yaml/issue-faults.ts";
import {
  type KeyPath,
  keyText,
  nodeAt,
  type ScalarNode,
  type TreeFault,
  type TreeNode,
} from "../../model/yaml/tree.ts";

/** What could conflict between this file and others. */
export interface FileBeside {
  readonly file: string;
  readonly folder: string;
  readonly tree: TreeNode | null;
}

/** A conflict of a file with others, or with itself. */
export interface FaultOfFile {
  readonly file: string;
  readonly fault: TreeFault;
}

/** A text of a file that no other may have. */
interface Claim {
  readonly what: "job name" | "export target" | "reports folder" | "metrics file";
  readonly file: string;
  readonly path: KeyPath;
  readonly node: ScalarNode;
  /** The compared form: a path is absolute. */
  readonly value: string;
}

/**
 * Finds conflicts between job files: equal job names (records and metrics are kept by name), equal output files, and
 * outputs inside an archive. Also compares files with other errors.
 */
export function uniqueFaults(files: readonly FileBeside[]): readonly FaultOfFile[] {
  const claims = files.flatMap(claimsOf);
  const first = new Map<string, Claim>();
  const faults: FaultOfFile[] = [];
  for (const claim of claims) {
    const id = `${claim.what === "job name" ? "name" : "path"} ${claim.value}`;
    const other = first.get(id);
    if (other === undefined) first.set(id, claim);
    else faults.push(taken(claim, other));
  }
  const archives = files.flatMap((file) => {
    const node = file.tree === null ? undefined : textAt(file.tree, ["archive"]);
    return node === undefined ? [] : [resolve(file.folder, String(node.value))];
  });
  for (const claim of claims) {
    if (claim.what !== "job name" && archives.some((archive) => isWithin(archive, claim.value))) {
      const message = `${keyText(claim.path)} lies in an archive, whose folder holds nothing else`;
      faults.push(faultOf(claim, message, "Write it elsewhere."));
    }
  }
  return faults;
}

function taken(claim: Claim, other: Claim): FaultOfFile {
  const { place } = other.node;
  const line = place.kind === "file" ? String(place.line) : place.flag;
  const shown = claim.node.variables.length > 0 ? "" : ` ${shownText(claim.node.written)}`;
  const message = `${keyText(claim.path)}: the ${claim.what}${shown} is already used ${
    claim.file === other.file ? `in line ${line}` : `by ${other.file}:${line}`
  }`;
  const hint =
    claim.what === "job name"
      ? "Give each job file a different name."
      : "Give each a different file or folder.";
  return faultOf(claim, message, hint);
}

function faultOf({ file, path, node }: Claim, message: string, hint: string): FaultOfFile {
  const text = node.variables.length > 0 ? null : shownText(node.written);
  return { file, fault: { place: node.place, key: keyText(path), text, message, hint } };
}

function claimsOf({ file, folder, tree }: FileBeside): readonly Claim[] {
  if (tree === null) return [];
  const claim = (what: Claim["what"], path: KeyPath): Claim[] => {
    const node = textAt(tree, path);
    if (node === undefined) return [];
    const text = String(node.value);
    return [{ what, file, path, node, value: what === "job name" ? text : resolve(folder, text) }];
  };
  const exports = nodeAt(tree, ["after", "exports"]);
  const outs = exports?.kind === "list" ? exports.items : [];
  return [
    ...claim("job name", ["name"]),
    ...outs.flatMap((_, index) => claim("export target", ["after", "exports", index, "out"])),
    ...claim("reports folder", ["after", "reports", "out"]),
    ...claim("metrics file", ["metrics", "textfile"]),
  ];
}

/** The text at a path, if it is one and not empty. */
function textAt(tree: TreeNode, path: KeyPath): ScalarNode | undefined {
  const node = nodeAt(tree, path);
  return node?.kind === "scalar" && typeof node.value === "string" && node.value !== "" ? node : undefined;
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`));
}
