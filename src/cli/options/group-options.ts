import type { Command } from "commander";

/** Puts options under headings in a command's help, by their long flags; the others stay under `Options:`. */
export function groupOptions(
  command: Command,
  groups: Readonly<Record<string, readonly `--${string}`[]>>,
): Command {
  for (const [heading, flags] of Object.entries(groups)) {
    for (const flag of flags) command.options.find(({ long }) => long === flag)?.helpGroup(heading);
  }
  return command;
}
