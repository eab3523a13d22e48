import { readFile } from "node:fs/promises";
import { Command } from "commander";
import { expect, test } from "vitest";
import { commandsFile, commandsText } from "../../scripts/command-reference.ts";
import { knownCommands } from "../../src/cli/entry/known-commands.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

/** One space for each gap, however the help was broken into lines. */
const flat = (text: string) => text.replace(/\s+/g, " ");

test("docs/commands.md is what `npm run reference` writes", async () => {
  expect(await readFile(commandsFile, "utf8")).toBe(await commandsText());
});

/** As the document writes defaults, choices and environment variables. */
const unquoted = (description: string) =>
  flat(description)
    .replace(/\((?:choices|default|env): [^()]*\)/g, (facts) => facts.replaceAll('"', ""))
    .replaceAll(") (env: ", ", env: ")
    .replace(/\benv: RUNVAULT_[A-Z_]+/g, "env");

/** Arguments and options as a terminal shows them: a term, and its description over one or more lines. */
function shownEntries(help: string): string[] {
  return [...help.matchAll(/^ {2}(\S.*?)(?: {2,}|\n {4,})(\S.*(?:\n {4,}\S.*)*)$/gm)]
    .map(([, term, description]) => flat(`- \`${term}\`: ${unquoted(description!)}`))
    .filter((entry) => !entry.startsWith("- `-h, --help`"));
}

/** The list under a heading. */
function listUnder(document: string, heading: string): string[] {
  const [, below = ""] = document.split(`\n${heading}\n`);
  return below
    .split(/^#/m)[0]!
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .map((line) => line.replace(/\\([<*])/g, "$1"));
}

// a description that only --help has, or a command that no longer names an option that it shares, would be missed above
test("docs/commands.md has, for each command, every option of its --help with its text", async () => {
  const document = await readFile(commandsFile, "utf8");
  const shared = listUnder(document, "## Shared options");
  const sections = document.split(/^### `runvault /m).slice(1);
  const known = await knownCommands([]);
  expect(sections).toHaveLength(known.length);
  for (const [index, { name }] of known.entries()) {
    const section = sections[index]!.split(/^## /m)[0]!;
    expect(section).toMatch(new RegExp(`^${name}\\b`));
    const headed = [...section.matchAll(/\[([\w, ]*options[\w, ]*)\]/g)].flatMap(([, title]) =>
      listUnder(document, `### ${title![0]!.toUpperCase()}${title!.slice(1)}`),
    );
    const named = shared.filter((line) => section.includes(`\`${/--[\w-]+|\w+/.exec(line)![0]}\``));
    const own = listUnder(`\n${section}`, section.split("\n", 1)[0]!).map((line) => {
      const [head, rest] = line.split("as [shared](#shared-options)");
      return rest === undefined ? line : `${shared.find((other) => other.startsWith(head!))}${rest}`;
    });
    const written = [...own, ...headed, ...named];
    const help = (await runInside([...name.split(" "), "--help"])).stdout;
    const lists = help.split(/^(?:Global Options|Examples?|Faults)\b.*$/m, 1)[0]!;
    expect(
      shownEntries(lists).filter((entry) => !written.includes(entry)),
      name,
    ).toEqual([]);
    expect(shownEntries(lists).length, name).toBeGreaterThan(name === "maintain" ? -1 : 0);
  }
});

// docs/commands.md leaves these names out
test("an option's environment variable has its name", async () => {
  for (const { name, entry } of await knownCommands()) {
    for (const { envVar, long } of entry?.declare(new Command(name)).options ?? [])
      if (envVar !== undefined)
        expect(envVar).toBe(`RUNVAULT_${long!.slice(2).toUpperCase().replaceAll("-", "_")}`);
  }
});

test("each line of the list of commands has at most twelve words", async () => {
  for (const { summary } of await knownCommands([]))
    expect(summary.split(" ").length).toBeLessThanOrEqual(12);
});
