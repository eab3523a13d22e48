import { existsSync } from "node:fs";

/**
 * The URL of a file of the installed package, wherever in the package this code runs. Works on any Node with modules.
 * Throws outside of a package.
 */
export function packageFile(path: string): URL {
  let folder = new URL(".", import.meta.url);
  while (!existsSync(new URL("package.json", folder))) {
    if (folder.pathname === "/") throw new Error("runvault runs outside of its package: install it with npm");
    folder = new URL("..", folder);
  }
  return new URL(path, folder);
}
