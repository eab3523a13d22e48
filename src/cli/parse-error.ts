import { CommanderError } from "commander";
import { RunvaultError } from "../model/error.ts";

/** What the parser of command lines says, as our own error; anything else as it is. */
export function parseError(thrown: unknown): unknown {
  if (!(thrown instanceof CommanderError)) return thrown;
  const [first = "", ...rest] = thrown.message.replace(/^error: /, "").split("\n");
  const near = rest
    .join(" ")
    .trim()
    .replace(/^\((.*)\)$/, "$1");
  return new RunvaultError("invalid_argument", first, {
    cause: thrown,
    hint: near === "" ? "`runvault --help` and `runvault COMMAND --help` show what there is." : near,
  });
}
