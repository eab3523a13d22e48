// node scripts/command-reference.ts (npm run reference): writes docs/commands.md from what the commands declare, which is
// what --help prints. A test compares the two.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, type Option } from "commander";
import { type KnownCommand, knownCommands } from "../src/cli/entry/known-commands.ts";

export const commandsFile = join(import.meta.dirname, "..", "docs/commands.md");

/** An argument or option, as a line of a list. */
interface Entry {
  /** Its name without values, for a command that refers to its description. */
  readonly name: string;
  /** Heading of its part of `--help`, if it is not the usual one. */
  readonly heading: string | null;
  readonly line: string;
}

interface Section {
  readonly name: string;
  readonly group: string;
  /** One, or one for each form of the command. */
  readonly usages: readonly string[];
  readonly description: string;
  readonly entries: readonly Entry[];
}

/** Entries that the same commands have. */
interface Shared {
  /** For a heading, and for links to it; null for those that commands name one by one. */
  readonly title: string | null;
  readonly entries: readonly Entry[];
}

/** So many entries of the same commands get a heading of their own. */
const headedEntries = 5;

/** Headings, by an entry below them; without one the heading names the commands. */
const titles: Readonly<Record<string, string>> = {
  "--transport": "Gateway options",
  "--transports": "Server options",
  "--benchmark": "Figure options",
};

/** The document. */
export async function commandsText(): Promise<string> {
  const known = await knownCommands();
  const sections = known.map((one) => sectionOf(one, known));
  const shared = sharedEntries(sections);
  return [
    "# Commands",
    "",
    "<!-- made by npm run reference -->",
    "",
    "Every command with its arguments and options. `runvault COMMAND --help` has them, too, with a description, notes and",
    "examples; `runvault --help` has the options of all commands. Options that several commands have come first.",
    "",
    "`env` means that an environment variable sets the option, too: `RUNVAULT_MAX_RPS` for `--max-rps`, and so on.",
    "",
    "## Shared options",
    ...shared.flatMap(({ title, entries }) => [
      "",
      ...(title === null ? [] : [`### ${title}`, ""]),
      ...entries.map(({ line }) => line),
    ]),
    ...[...Map.groupBy(sections, ({ group }) => group)].flatMap(([group, members]) => [
      "",
      `## ${group}`,
      ...members.flatMap((section) => sectionLines(section, shared)),
    ]),
    "",
  ].join("\n");
}

function sectionOf({ name, group, summary, entry }: KnownCommand, known: readonly KnownCommand[]): Section {
  if (entry === null) {
    const below = known.filter((other) => other.name.startsWith(`${name} `));
    return {
      name,
      group,
      usages: [`runvault ${name}`],
      description: `${sentence(summary)} Its commands: ${below.map((other) => `\`${other.name}\``).join(", ")}.`,
      entries: [],
    };
  }
  const command = entry.declare(new Command(`runvault ${name}`));
  const help = command.createHelp();
  return {
    name,
    group,
    usages: help.commandUsage(command).replaceAll(" [options]", "").split(/\n\s*/),
    description: sentence(summary),
    entries: [
      ...help.visibleArguments(command).map((argument) => {
        const term = help.argumentTerm(argument);
        return entryOf(term, term, null, help.argumentDescription(argument));
      }),
      ...help
        .visibleOptions(command)
        .filter(({ long }) => long !== "--help")
        .map((option: Option) => {
          const heading = option.helpGroupHeading?.replace(/:$/, "") ?? null;
          return entryOf(
            option.long ?? option.flags,
            help.optionTerm(option),
            heading,
            help.optionDescription(option),
          );
        }),
    ],
  };
}

function entryOf(name: string, term: string, heading: string | null, description: string): Entry {
  return { name, heading, line: `- \`${term}\`: ${text(description)}` };
}

/** Entries that several commands have word for word, those of the same commands together. */
function sharedEntries(sections: readonly Section[]): Shared[] {
  const owners = new Map<string, { entry: Entry; names: string[] }>();
  for (const { name, entries } of sections)
    for (const entry of entries) {
      const owner = owners.get(entry.line) ?? { entry, names: [] };
      owner.names.push(name);
      owners.set(entry.line, owner);
    }
  const several = [...owners.values()].filter(({ names }) => names.length > 1);
  const byOwners = [...Map.groupBy(several, ({ names }) => new Intl.ListFormat("en").format(names))];
  const headed = byOwners.filter(([, members]) => members.length >= headedEntries);
  // of two with the same name, the one that more commands have
  const others = byOwners
    .filter(([, members]) => members.length < headedEntries)
    .flatMap(([, members]) => members)
    .sort((a, b) => b.names.length - a.names.length);
  const byName = Map.groupBy(others, ({ entry }) => entry.name);
  return [
    { title: null, entries: [...byName.values()].map(([first]) => first!.entry) },
    ...headed.map(([names, members]) => ({
      title: members.map(({ entry }) => titles[entry.name]).find(Boolean) ?? `Options of ${names}`,
      entries: members.map(({ entry }) => entry),
    })),
  ];
}

function sectionLines({ name, usages, description, entries }: Section, shared: readonly Shared[]): string[] {
  const isShared = (entry: Entry) => shared.some((part) => has(part, entry));
  const own = entries.filter((entry) => !isShared(entry)).map((entry) => continued(entry, shared));
  const links = shared.flatMap((part) => {
    const here = entries.filter((entry) => has(part, entry));
    if (here.length === 0) return [];
    if (part.title === null) return here.map((entry) => `\`${entry.name}\``).join(", ");
    const title = part.title.toLowerCase();
    return `the [${title}](#${title.replace(/,/g, "").replaceAll(" ", "-")})`;
  });
  return [
    "",
    `### \`${usages.length === 1 ? usages[0]! : `runvault ${name}`}\``,
    "",
    ...(usages.length === 1 ? [] : [usages.map((usage) => `\`${usage}\``).join(", "), ""]),
    description,
    ...(own.length === 0 ? [] : ["", ...linesOf(own)]),
    ...(links.length === 0 ? [] : ["", `Shared: ${links.join("; ")}.`]),
  ];
}

/** One whose description goes on after that of a shared one refers to it. */
function continued(entry: Entry, shared: readonly Shared[]): Entry {
  const line = shared
    .flatMap(({ entries }) => entries)
    .map((other) => other.line)
    .find((line) => entry.line.startsWith(`${line}; `) || entry.line.startsWith(`${line} (`));
  if (line === undefined) return entry;
  return {
    ...entry,
    line: `- \`${entry.name}\`: as [shared](#shared-options)${entry.line.slice(line.length)}`,
  };
}

function has(part: Shared, entry: Entry): boolean {
  return part.entries.some(({ line }) => line === entry.line);
}

/** A line for each, those under another heading of `--help` after a line with the heading. */
function linesOf(entries: readonly Entry[]): string[] {
  return [...Map.groupBy(entries, ({ heading }) => heading)].flatMap(([heading, members]) => [
    ...(heading === null ? [] : ["", `${heading}:`, ""]),
    ...members.map(({ line }) => line),
  ]);
}

function sentence(summary: string): string {
  return `${summary[0]!.toUpperCase()}${summary.slice(1)}.`;
}

/**
 * Without the characters that Markdown would take for markup, without quotes around defaults and choices, and without the
 * names of environment variables, which are those of the options.
 */
function text(plain: string): string {
  return plain
    .replaceAll("\n", " ")
    .replace(/\((?:choices|default|env): [^()]*\)/g, (facts) => facts.replaceAll('"', ""))
    .replaceAll(") (env: ", ", env: ")
    .replace(/\benv: RUNVAULT_[A-Z_]+/g, "env")
    .replace(/[<*]/g, "\\$&");
}

if (import.meta.main) writeFileSync(commandsFile, await commandsText());
