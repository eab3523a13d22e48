import { relative, sep } from "node:path";
import type { ProfileSecret } from "../../profile.ts";
import { scalar } from "../draft-line.ts";

/** Where the values of headers or keys come from, as a profile in this folder names it; never a value. */
export function secretLines(
  key: "headers" | "keys",
  secrets: readonly ProfileSecret[],
  folder: string,
): string[] {
  if (secrets.length === 0) return [];
  // the keys came from a profile that already allowed this
  const more = key === "keys" ? ", in_address: true" : "";
  const pairs = secrets.map(({ name, from }) => {
    const source =
      "env" in from
        ? `env: ${from.env}`
        : `file: ${scalar(relative(folder, from.file).replaceAll(sep, "/"))}`;
    return `${scalar(name)}: { ${source}${more} }`;
  });
  return [`${key}: { ${pairs.join(", ")} }`];
}
