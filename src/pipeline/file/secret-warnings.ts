import { stat } from "node:fs/promises";
import { otherReaders } from "../../model/other-readers.ts";
import { shownText } from "../../model/yaml/issue-faults.ts";
import {
  type KeyPath,
  keyText,
  nodeAt,
  placeAt,
  type TreeFault,
  type TreeNode,
} from "../../model/yaml/tree.ts";
import type { Job } from "./job-schema.ts";

/** Warnings about secret files that others can read, or that do not exist. */
export async function secretWarnings({ gateway }: Job, tree: TreeNode): Promise<readonly TreeFault[]> {
  const { token, tls } = gateway;
  const secrets: readonly (readonly [KeyPath, string | undefined])[] = [
    [["gateway", "token", "file"], token?.kind === "file" ? token.file : undefined],
    [["gateway", "tls", "key"], tls?.key],
  ];
  const found = await Promise.all(
    secrets.map(async ([path, file]) => {
      const words = file === undefined ? null : await wordsOf(file);
      if (words === null) return [];
      const node = nodeAt(tree, path);
      const isHidden = node?.kind !== "scalar" || node.variables.length > 0;
      const text = isHidden ? null : shownText(node.written);
      const [message, hint] = words;
      return [
        {
          place: placeAt(tree, path),
          key: keyText(path),
          text,
          message: `${keyText(path)}: ${message}`,
          hint,
        },
      ];
    }),
  );
  return found.flat();
}

async function wordsOf(file: string): Promise<readonly [message: string, hint: string] | null> {
  const stats = await stat(file).catch((error: NodeJS.ErrnoException) => error);
  if (stats instanceof Error) {
    return stats.code === "ENOENT"
      ? ["this file does not exist here", "It must exist when the job runs."]
      : [`this file cannot be read: ${stats.code}`, "The job's user must be able to read it."];
  }
  const readers = otherReaders(stats);
  return readers === null ? null : [`${readers} can read this file`, "Make it private with chmod 600."];
}
