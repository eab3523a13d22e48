import type { CommandToCopy } from "./command-to-copy.ts";

/** The commands that work in the archive's folder that --archive names. */
export const commandsOfArchives = [
  "archive",
  "runs",
  "query",
  "metrics",
  "report",
  "reconcile",
  "shell",
  "export",
  "notebook",
  "verify",
  "maintain accept",
  "maintain rebuild",
  "rm",
  "gc",
  "init",
  "status",
  "jobs",
  "serve",
] as const;

// `serve token` works in no archive
const commandInText = new RegExp(
  `\`runvault (${commandsOfArchives.join("|")})(?![\\w-]| token\\b)([^\`]*)\``,
  "g",
);

/**
 * A text, such as an error's hint, whose commands work in the folders of the command that prints it. What knows of no
 * command line names commands without folders: told where --archive was given, such a command would work in another
 * archive, or in none.
 */
export function commandsInText(text: string, command: CommandToCopy): string {
  return text.replace(commandInText, (whole, name: string, rest: string) =>
    // a gateway's list has no folder, and what names its folders is a command to copy already
    / --(?:archive|scratch|gateway|help|tokens)(?![\w-])/.test(rest) ? whole : `\`${command(name)}${rest}\``,
  );
}
