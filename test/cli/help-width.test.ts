import { expect, it } from "vitest";
import { knownCommands } from "../../src/cli/entry/known-commands.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

/** Wider lines break in mid-word in the windows that people read help in. */
const most = 100;

it("keeps every line of every help within 100 columns", async () => {
  const names = (await knownCommands([])).map(({ name }) => name);
  for (const words of [[], ...names.map((name) => name.split(" "))]) {
    const { stdout } = await runInside([...words, "--help"]);
    expect(stdout).toContain("Usage: runvault");
    expect(stdout.split("\n").filter((line) => line.length > most)).toEqual([]);
  }
});
