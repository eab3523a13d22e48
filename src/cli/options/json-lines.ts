import { Option } from "commander";

export const jsonLinesFlag = "--json=lines";

/**
 * `--json=lines`, of commands that tell their results as they come. A flag of its own, whose name has the `=` in it: an
 * option that takes a value, or none, would swallow the argument behind a plain `--json`.
 */
export function jsonLinesOption(description: string): Option {
  return new JsonLines(jsonLinesFlag, description).implies({ json: true });
}

class JsonLines extends Option {
  override attributeName(): string {
    return "jsonLines";
  }
}
