// node scripts/command-reference.ts (npm run reference): writes docs/commands.md from what the commands declare, which is
// what --help prints. A test compares the two.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, type Help, type Option } from "commander";
import { type KnownCommand, knownCommands } from "../src/cli/entry/known-commands.ts";

export const commandsFile = join(import.meta.dirname, "..", "docs/commands.md");

/** The document. */
export async function commandsText(): Promise<string> {
  const known = await knownCommands();
  const groups = [...new Set(known.map(({ group }) => group))];
  const seen = new Map<string, string>();
  return [
    "# Commands",
    "",
    "<!-- made by npm run reference -->",
    "",
    "What `runvault COMMAND --help` prints, in one place. Options that every command has are in `runvault --help`.",
    ...groups.flatMap((group) => [
      "",
      `## ${group}`,
      "",
      "| command | |",
      "| --- | --- |",
      ...known
        .filter((one) => one.group === group)
        .map(
          ({ name, summary }) =>
            `| [\`${name}\`](#runvault-${name.replaceAll(" ", "-")}) | ${cell(summary)} |`,
        ),
      ...known.filter((one) => one.group === group).flatMap((one) => commandLines(one, known, seen)),
    ]),
    "",
  ].join("\n");
}

function commandLines(
  one: KnownCommand,
  known: readonly KnownCommand[],
  seen: Map<string, string>,
): string[] {
  const { name, summary, entry } = one;
  const title = ["", `### runvault ${name}`, ""];
  if (entry === null) {
    const below = known
      .filter((other) => other.name.startsWith(`${name} `))
      .map((other) => `\`${other.name}\``);
    return [...title, `Commands to ${summary}: ${below.join(", ")}.`];
  }
  const command = entry.declare(new Command(`runvault ${name}`));
  const help = command.createHelp();
  const argumentRows = help
    .visibleArguments(command)
    .map((argument) => row(help.argumentTerm(argument), help.argumentDescription(argument)));
  return [
    ...title,
    text(command.description()),
    "",
    "```text",
    help.commandUsage(command),
    "```",
    ...(argumentRows.length === 0 ? [] : ["", "| argument | |", "| --- | --- |", ...argumentRows]),
    ...optionLines(command, help, seen),
    "",
    "```text",
    afterHelp(command),
    "```",
  ];
}

/** A table for each heading; one that a command before has, word for word, is named. */
function optionLines(command: Command, help: Help, seen: Map<string, string>): string[] {
  const byHeading = Map.groupBy(
    help.visibleOptions(command).filter(({ long }) => long !== "--help"),
    ({ helpGroupHeading = "Options:" }: Option) => helpGroupHeading.replace(/:$/, ""),
  );
  return [...byHeading].flatMap(([heading, options]) => {
    const rows = options.map((option) => row(help.optionTerm(option), help.optionDescription(option)));
    const same = seen.get(rows.join("\n"));
    if (same !== undefined) return ["", `${heading}: as for [\`${same}\`](#${same.replaceAll(" ", "-")}).`];
    if (heading !== "Options") seen.set(rows.join("\n"), command.name());
    return ["", `| ${heading.toLowerCase()} | |`, "| --- | --- |", ...rows];
  });
}

/** What the command adds below its options. */
function afterHelp(command: Command): string {
  let all = "";
  command.configureOutput({ writeOut: (part) => (all += part) }).outputHelp();
  return all.slice(command.helpInformation().length).trim();
}

function row(term: string, description: string): string {
  return `| \`${term.replaceAll("|", "\\|")}\` | ${cell(description)} |`;
}

function cell(description: string): string {
  return text(description).replaceAll("|", "\\|");
}

/** Without what Markdown would take for its own. */
function text(plain: string): string {
  return plain.replaceAll("\n", " ").replace(/[<*]/g, "\\$&");
}

if (import.meta.main) writeFileSync(commandsFile, await commandsText());
