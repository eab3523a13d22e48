import { CommanderError } from "commander";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { formerNameError } from "../entry/former-names.ts";

/**
 * What the parser of command lines says, as our own error; anything else as it is. `command` is the one that the line
 * names, if it names one; `names` are those of all commands.
 */
export function parseError(
  thrown: unknown,
  {
    argv,
    command,
    names,
  }: {
    readonly argv: readonly string[];
    readonly command: string | undefined;
    readonly names: readonly string[];
  },
): unknown {
  if (!(thrown instanceof CommanderError)) return thrown;
  const [, unknown] = /^error: unknown command '(.*)'$/m.exec(thrown.message) ?? [];
  const former = unknown === undefined ? null : formerNameError(argv, unknown);
  if (former !== null) return former;
  const message = thrown.message.replace(/^error: /, "");
  // the text before it may end anywhere: it quotes the command line
  const [suggestion = "", near] = /\n\((Did you mean [^\n]*)\)$/.exec(message) ?? [];
  return new RunvaultError("invalid_argument", message.slice(0, message.length - suggestion.length), {
    cause: thrown,
    hint:
      near ??
      meantChoice(message) ??
      meantBelow(message, command, names) ??
      helpHint(thrown.code === "commander.unknownCommand" ? undefined : command),
  });
}

/** The nearest allowed value of an option or argument, for a wrong one. */
function meantChoice(message: string): string | null {
  const [, given, choices] =
    /(?:argument|command-argument value) '(.*)' is invalid.*\. Allowed choices are (.*)\.$/s.exec(message) ??
    [];
  if (given === undefined || choices === undefined) return null;
  const near = nearestName(given, choices.split(", "));
  return near === null ? null : `Did you mean ${near}?`;
}

/** The command below this one that a word too many may mean. */
function meantBelow(message: string, command: string | undefined, names: readonly string[]): string | null {
  const [, given] = /^too many arguments .* got \d+: (.*?)(?:, .*)?\.$/s.exec(message) ?? [];
  const below = names.filter((name) => name.startsWith(`${command} `));
  const near = given === undefined ? null : nearestName(`${command} ${given}`, below);
  return near === null ? null : `Did you mean \`runvault ${near}\`?`;
}

function helpHint(command: string | undefined): string {
  return command === undefined
    ? "`runvault --help` and `runvault COMMAND --help` list commands and options."
    : `\`runvault ${command} --help\` shows every option.`;
}
