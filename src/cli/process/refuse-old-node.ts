import { readFileSync } from "node:fs";
import { packageFile } from "../../model/package-file.ts";

/** Prints an error if this Node is too old, and returns whether it is. Works on any Node that knows modules. */
export function refuseOldNode(): boolean {
  const { engines } = JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as {
    engines: { node: string };
  };
  const needed = engines.node.replace(">=", "");
  const numbers = (version: string) => version.split(".").map(Number);
  const [own, least] = [numbers(process.versions.node), numbers(needed)];
  const at = own.findIndex((part, index) => part !== least[index]);
  if (at < 0 || own[at]! > least[at]!) return false;
  process.stderr.write(
    `runvault: needs Node ${needed} or newer, and this is ${process.versions.node}: run it with a newer Node\n`,
  );
  return true;
}
