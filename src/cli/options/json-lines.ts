import { Option } from "commander";

export const jsonLinesFlag = "--json=lines";

/**
 * `--json=lines`, for commands that print results as they come. It is a separate flag with the `=` in its name: an
 * option with an optional value would swallow the argument after a plain `--json`.
 */
export function jsonLinesOption(description: string): Option {
  return new JsonLines(jsonLinesFlag, description).implies({ json: true });
}

class JsonLines extends Option {
  override attributeName(): string {
    return "jsonLines";
  }
}
