import type { CommandToCopy } from "./command-to-copy.ts";

/** Commands that work in the archive that --archive names. */
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

// `serve token` needs no archive
const commandInText = new RegExp(
  `\`runvault (${commandsOfArchives.join("|")})(?![\\w-]| token\\b)([^\`]*)\``,
  "g",
);

/**
 * Adds folders to the commands in a text, such as an error's hint. Code below the command line writes commands without
 * folders; under --archive, such a command would use another archive, or none.
 */
export function commandsInText(text: string, command: CommandToCopy): string {
  return text.replace(commandInText, (whole, name: string, rest: string) =>
    // a gateway's list has no folder, and a command that names its folders is already complete
    / --(?:archive|scratch|gateway|help|tokens)(?![\w-])/.test(rest) ? whole : `\`${command(name)}${rest}\``,
  );
}
