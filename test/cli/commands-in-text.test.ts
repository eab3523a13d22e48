import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { knownCommands } from "../../src/cli/entry/known-commands.ts";
import { commandsToCopy } from "../../src/cli/output/command-to-copy.ts";
import { commandsInText, commandsOfArchives } from "../../src/cli/output/commands-in-text.ts";
import type { Terminal } from "../../src/cli/output/terminal.ts";
import { inProject } from "../fixtures/command/project.ts";

const terminal = { env: {} } as Terminal;
const elsewhere = commandsToCopy({ archive: "/mnt/my copy" }, { terminal });
const usual = commandsToCopy({ archive: "archive" }, { terminal });

/** Every command that a text in src/ names in backticks, as it stands there. */
function namedCommands(): string[] {
  const src = inProject("src");
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  return files.flatMap((name) =>
    readFileSync(join(src, name), "utf8")
      .split("\n")
      .filter((line) => !/^\s*(?:\*|\/\/|\/\*)/.test(line))
      .flatMap((line) => line.match(/\\?`runvault (?!cannot )[a-z][^`\\]*\\?`/g) ?? [])
      .map((text) => text.replaceAll("\\", "")),
  );
}

describe("commands in texts from below the command line", () => {
  test("work in the folders that the command itself was given", () => {
    const hint = "Run `runvault verify --repair` on the run, or remove it with `runvault rm`.";
    expect(commandsInText(hint, elsewhere)).toBe(
      "Run `runvault verify --archive '/mnt/my copy' --repair` on the run, or remove it with `runvault rm --archive '/mnt/my copy'`.",
    );
    expect(commandsInText(hint, usual)).toBe(hint);
  });

  test("stay as they are where they name their folders, or have none", () => {
    for (const text of [
      `\`${elsewhere("maintain rebuild", "alpha/1")}\``,
      "`runvault runs --gateway URL` lists them",
      "`runvault verify --help` shows every option",
      "`runvault serve token NAME` makes its lines",
      "runvault verify",
    ])
      expect(commandsInText(text, elsewhere)).toBe(text);
  });

  test("are those that take --archive", async () => {
    const known = await Promise.all(
      (await knownCommands([])).map(
        async ({ name }) => (await knownCommands(name.split(" "))).find((one) => one.name === name)!,
      ),
    );
    const taking = known.filter(({ name, entry }) =>
      entry?.declare(new Command(name)).options.some(({ long }) => long === "--archive"),
    );
    expect(taking.map(({ name }) => name).sort()).toEqual([...commandsOfArchives].sort());
  });

  test("no text in the sources names one that is left in another folder", () => {
    const named = namedCommands();
    expect(named.length).toBeGreaterThan(15);
    const elsewhereOrNone =
      /^`runvault (?:serve token|maintain diff|simulate|completion|check|run|schema|profile|schedule)\b| --(?:archive|gateway|help|tokens)\b/;
    for (const text of named.filter((one) => !elsewhereOrNone.test(one)))
      expect(commandsInText(text, elsewhere)).toContain("--archive '/mnt/my copy'");
  });
});
