import { type KeyPath, keyText, nodeAt, type TreeFault, type TreeNode } from "../../model/yaml/tree.ts";

/** Finds users and passwords in addresses in the file itself, where its readers would see them. */
export function literalSecrets(tree: TreeNode): readonly TreeFault[] {
  const aliases = nodeAt(tree, ["gateway", "source_alias"]);
  const paths: KeyPath[] = [
    ["gateway", "url"],
    ...(aliases?.kind === "list" ? aliases.items : []).map((_, index) => ["gateway", "source_alias", index]),
    ["metrics", "pushgateway"],
  ];
  return paths.flatMap((path) => {
    const node = nodeAt(tree, path);
    if (node?.kind !== "scalar" || typeof node.value !== "string") return [];
    const [, user] = /:\/\/([^/\s]*)@/.exec(node.written) ?? [];
    // one from the environment is not visible in the file
    if (user === undefined || /\$\{[A-Za-z_][A-Za-z0-9_]*\}/.test(user)) return [];
    const message = `${keyText(path)} must not have a user or password in it`;
    const hint = `Take the whole address from the environment: \${NAME}.`;
    return [{ place: node.place, key: keyText(path), text: null, message, hint }];
  });
}
