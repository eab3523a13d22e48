import { expect, it, test } from "vitest";
import { knownCommands } from "../../src/cli/entry/known-commands.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

/** Wider lines break in mid-word in the windows that people read help in. */
const most = 100;

async function everyHelp(columns: number | null): Promise<readonly string[]> {
  const names = (await knownCommands([])).map(({ name }) => name);
  const helps: string[] = [];
  for (const words of [[], ...names.map((name) => name.split(" "))]) {
    const { stdout } = await runInside([...words, "--help"], { columns });
    expect(stdout).toContain("Usage: runvault");
    helps.push(stdout);
  }
  return helps;
}

it("keeps every line of every help within 100 columns", async () => {
  for (const help of await everyHelp(null))
    expect(help.split("\n").filter((line) => line.length > most)).toEqual([]);
});

test("a narrow terminal breaks help between words: only a word that is longer than a line leaves it", async () => {
  const helps = await everyHelp(null);
  for (const [at, help] of (await everyHelp(40)).entries()) {
    const wide = help.split("\n").filter((line) => line.length > 40);
    expect(wide.filter((line) => line.trim().includes(" "))).toEqual([]);
    const words = (text: string) => text.split(/\s+/).filter((word) => word !== "");
    expect(words(help)).toEqual(words(helps[at]!));
  }
});
