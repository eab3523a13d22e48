import { CommanderError } from "commander";
import { RunvaultError } from "../../model/error.ts";

/**
 * What the parser of command lines says, as our own error; anything else as it is. `command` is the one that the line
 * names, if it names one.
 */
export function parseError(thrown: unknown, command: string | undefined): unknown {
  if (!(thrown instanceof CommanderError)) return thrown;
  const message = thrown.message.replace(/^error: /, "");
  // the line before may end anywhere: it has words of the command line in it
  const [suggestion = "", near] = /\n\((Did you mean [^\n]*)\)$/.exec(message) ?? [];
  return new RunvaultError("invalid_argument", message.slice(0, message.length - suggestion.length), {
    cause: thrown,
    hint: near ?? (thrown.code === "commander.unknownCommand" ? helpHint(undefined) : helpHint(command)),
  });
}

function helpHint(command: string | undefined): string {
  return command === undefined
    ? "`runvault --help` and `runvault COMMAND --help` list commands and options."
    : `\`runvault ${command} --help\` shows every option.`;
}
