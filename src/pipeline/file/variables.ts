import {
  type KeyPath,
  keyText,
  type ScalarNode,
  type TreeFault,
  type TreeNode,
} from "../../model/yaml/tree.ts";
import type { JobPlace } from "./job-values.ts";

/**
 * Replaces `${NAME}` and `${NAME:-default}` in a tree's texts from the environment; `$${` is a literal `${`. Replaced
 * text is not scanned again. Only values are replaced, never keys or YAML source, so a value cannot add a key. As in a
 * shell, an empty variable counts as unset.
 */
export function withVariables(
  root: TreeNode,
  env: JobPlace["env"],
): { readonly tree: TreeNode; readonly faults: readonly TreeFault[] } {
  const faults: TreeFault[] = [];
  const replaced = (node: TreeNode, path: KeyPath): TreeNode => {
    switch (node.kind) {
      case "map": {
        const entries = [...node.entries].map(
          ([key, { key: place, value }]) =>
            [key, { key: place, value: replaced(value, [...path, key]) }] as const,
        );
        return { ...node, entries: new Map(entries) };
      }
      case "list":
        return { ...node, items: node.items.map((item, index) => replaced(item, [...path, index])) };
      case "scalar":
        return scalarWithVariables(node, env, (message, hint, text) =>
          faults.push({
            place: node.place,
            key: keyText(path),
            text,
            message: `${path.length === 0 ? "the file" : keyText(path)} ${message}`,
            hint,
          }),
        );
    }
  };
  const tree = replaced(root, []);
  return { tree, faults };
}

/** An environment variable that a job file names. */
export interface JobVariable {
  readonly name: string;
  /** Whether the file gives no default for it. */
  readonly isNeeded: boolean;
}

/** The variables in a tree's texts, each once, in order. */
export function variablesIn(root: TreeNode): readonly JobVariable[] {
  const found: JobVariable[] = [];
  const visit = (node: TreeNode): void => {
    if (node.kind === "map") for (const { value } of node.entries.values()) visit(value);
    else if (node.kind === "list") node.items.forEach(visit);
    else if (typeof node.value === "string") {
      for (const [, inside = ""] of node.value.matchAll(reference)) {
        const [, name, otherwise] = nameAndDefault.exec(inside) ?? [];
        if (name !== undefined) found.push({ name, isNeeded: otherwise === undefined });
      }
    }
  };
  visit(root);
  return uniqueVariables(found);
}

/** Each once: needed if needed anywhere. */
export function uniqueVariables(all: readonly JobVariable[]): readonly JobVariable[] {
  return [...new Set(all.map(({ name }) => name))].map((name) => ({
    name,
    isNeeded: all.some((one) => one.name === name && one.isNeeded),
  }));
}

const reference = /\$\$\{|\$\{([^{}]*)\}|\$\{/g;
const nameAndDefault = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

function scalarWithVariables(
  node: ScalarNode,
  env: JobPlace["env"],
  fault: (message: string, hint: string, text: string) => void,
): ScalarNode {
  if (typeof node.value !== "string" || !node.value.includes("${")) return node;
  const variables: string[] = [];
  let isUnread: true | undefined;
  const value = node.value.replace(reference, (found, inside?: string) => {
    if (found === "$${") return "${";
    const [, name, otherwise] = nameAndDefault.exec(inside ?? "") ?? [];
    if (name === undefined) {
      isUnread = true;
      fault(
        "has a ${ without the name of a variable",
        `Write \${NAME} or \${NAME:-default}; a literal \${ is written $\${.`,
        found,
      );
      return "";
    }
    const set = env[name] ?? "";
    if (set !== "") variables.push(name);
    else if (otherwise === undefined) {
      isUnread = true;
      fault(
        `needs the environment variable ${name}, which is not set`,
        `Set ${name}, or give a default: \${${name}:-default}.`,
        found,
      );
    }
    return set === "" ? (otherwise ?? "") : set;
  });
  return { ...node, value, variables, ...(isUnread === true ? { isUnread } : {}) };
}
