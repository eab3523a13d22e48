import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { commandsFile, commandsText } from "../../scripts/command-reference.ts";
import { knownCommands } from "../../src/cli/entry/known-commands.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

/** One space for each gap, however the help was broken into lines. */
const flat = (text: string) => text.replace(/\s+/g, " ");

test("docs/commands.md is what `npm run reference` writes", async () => {
  expect(await readFile(commandsFile, "utf8")).toBe(await commandsText());
});

test("docs/commands.md says of each command what its --help says", async () => {
  const sections = (await readFile(commandsFile, "utf8")).split(/^### /m).slice(1);
  const known = await knownCommands([]);
  expect(sections.map((section) => section.split("\n", 1)[0])).toEqual(
    known.map(({ name }) => `runvault ${name}`),
  );
  for (const [index, { name }] of known.entries()) {
    const help = flat((await runInside([...name.split(" "), "--help"])).stdout);
    const section = sections[index]!;
    // not the tables of a group of commands that begins behind it
    const rows = section.split(/^## /m)[0]!.matchAll(/^\| `(.*?)` \| (.*) \|$/gm);
    for (const [, term, description] of rows) {
      expect(help).toContain(flat(`${term} ${description}`).replace(/\\([|<*])/g, "$1"));
    }
    const [, after] = /\n```text\n([^`]*)\n```\n*(?:\n## [\s\S]*)?$/.exec(section) ?? [];
    if (after !== undefined) expect(help).toContain(flat(after));
  }
});

test("each line of the list of commands has at most twelve words", async () => {
  for (const { summary } of await knownCommands([]))
    expect(summary.split(" ").length).toBeLessThanOrEqual(12);
});
