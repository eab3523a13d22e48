import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { exit, exitPrecedence, worthRetrying } from "../../src/model/error.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject as fromRoot } from "../fixtures/command/project.ts";

const readme = readFileSync(fromRoot("README.md"), "utf8");
// an interruption comes ahead of all, and a wrong command line after all
const ranked = exitPrecedence.slice(2, -1);
const retried = [...worthRetrying]
  .sort()
  .join(", ")
  .replace(/, (?=\d+$)/, " and ");

/** The cells of the rows of the table under a heading, without its head. */
function tableUnder(heading: string): string[][] {
  const section = readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  const rows = [...(section ?? "").matchAll(/^\|(.*)\|$/gm)].slice(2);
  return rows.map(([, row]) => row!.split(/(?<!\\)\|/).map((cell) => cell.trim()));
}

// test/all/readme.test.ts runs them
test("the README's snippets name npm scripts that there are", () => {
  const { scripts } = JSON.parse(readFileSync(fromRoot("package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const named = [...readme.matchAll(/npm (?:run ([\w:]+)|(test))/g)].map(
    ([, script, test]) => script ?? test!,
  );
  expect(named).toContain("demo");
  for (const name of named) expect(Object.keys(scripts)).toContain(name);
});

describe("the documents", () => {
  test("the map names the packages that there are, and every one of them", () => {
    const [, section = ""] = readFileSync(fromRoot("docs/ARCHITECTURE.md"), "utf8").split(
      /^## Dependencies$/m,
    );
    const { dependencies, devDependencies } = JSON.parse(readFileSync(fromRoot("package.json"), "utf8")) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    const named = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    const rows = [...section.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, cell]) => named(cell!));
    expect(rows.sort()).toEqual(Object.keys(dependencies).sort());
    const [, development = ""] = section.split("Development only:");
    // types come with what they are the types of
    const developing = Object.keys(devDependencies).filter((name) => !name.startsWith("@types/"));
    expect(named(development).sort()).toEqual(developing.sort());
  });

  test("what package.json ships is there, or is built", () => {
    const { files } = JSON.parse(readFileSync(fromRoot("package.json"), "utf8")) as { files: string[] };
    const shipped = files.filter((file) => !file.startsWith("!") && file !== "dist");
    expect(shipped.filter((file) => !existsSync(fromRoot(file)))).toEqual([]);
  });
});

describe("the README's tables", () => {
  test("name every command that --help lists, and flags and variables that exist", async () => {
    const { stdout: help } = await runInside(["--help"]);
    const [listed = ""] = help.split(/^Examples:$/m);
    const commands = [...listed.matchAll(/^ {2}([a-z]+)(?: {2,}|$)/gm)].map(([, name]) => name!);
    const named = tableUnder("Commands").flatMap(([, cell]) =>
      [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
    );
    expect([...named, "help"].sort()).toEqual(commands.sort());

    const helps = await Promise.all(commands.map(async (name) => (await runInside([name, "--help"])).stdout));
    const known = [help, ...helps].join("\n");
    const ours = readme.replace(/^npm .*$/gm, "");
    const flags = new Set(ours.match(/(?<![\w-])--[a-z][a-z-]+/g));
    const variables = new Set(ours.match(/RUNVAULT_[A-Z_]+/g));
    expect(flags.size).toBeGreaterThan(5);
    for (const word of [...flags, ...variables]) expect(known).toMatch(new RegExp(`${word}(?![\\w-])`));
  });

  test("describe a command, or several, in at most twelve words", () => {
    const long = tableUnder("Commands").filter(([, , what]) => what!.split(/\s+/).length > 12);
    expect(long).toEqual([]);
  });

  test("fit on 130 lines", () => {
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(130);
  });

  // caught by: documents that grow until no one reads them
  test("leave the documents at most 180,000 bytes", () => {
    const files = globSync(["docs/*.md", "docs/*/*.md"], { cwd: fromRoot(".") });
    expect(files.length).toBeGreaterThan(20);
    const bytes = files.map((file) => readFileSync(fromRoot(file)).length);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(180_000);
  });

  test("give the exit codes that there are, which of several counts, and after which a retry helps", () => {
    const rows = tableUnder("Exit codes");
    const codes = rows.flatMap(([cell]) => cell!.split(", ").map(Number));
    expect(codes).toEqual(Object.values(exit));
    const [, several = ""] =
      /If several apply, the exit status is the first of ([\d, ]+)\./.exec(readme) ?? [];
    expect(several.split(", ").map(Number)).toEqual(ranked);
    const yes = rows.filter(([, , retry]) => retry!.startsWith("yes")).map(([cell]) => Number(cell));
    expect(yes).toEqual([...worthRetrying].sort());
    expect(readme).toContain(`A retry helps after ${retried}.`);
  });

  test("say of exit codes what --help says", async () => {
    const { stdout: help } = await runInside(["--help"]);
    const [, section = ""] = /^Exit status:\n(.*)/ms.exec(help) ?? [];
    const codes = [...section.matchAll(/^ {2}(\d[\d, ]*?) {2,}\w/gm)].flatMap(([, cell]) =>
      cell!.split(", "),
    );
    expect(codes.map(Number)).toEqual(Object.values(exit));
    expect(section).toContain(`the first of ${ranked.join(", ")}.`);
    expect(section).toContain(`A retry helps after ${retried}.`);
  });
});
