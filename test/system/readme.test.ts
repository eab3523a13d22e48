import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exit, exitPrecedence, worthRetrying } from "../../src/model/error.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { builtMain, inProject as fromRoot } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

const readme = readFileSync(fromRoot("README.md"), "utf8");
// an interruption comes ahead of all, and a wrong command line after all
const ranked = exitPrecedence.slice(2, -1);
const retried = [...worthRetrying]
  .sort()
  .join(", ")
  .replace(/, (?=\d+$)/, " and ");

/** The README's fenced blocks of a language. */
function blocks(language: string): string[] {
  return [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , text]) => text!);
}

/** The cells of the rows of the table under a heading, without its head. */
function tableUnder(heading: string): string[][] {
  const section = readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  const rows = [...(section ?? "").matchAll(/^\|(.*)\|$/gm)].slice(2);
  return rows.map(([, row]) => row!.split(/(?<!\\)\|/).map((cell) => cell.trim()));
}

/** Runs a program with its standard input; resolves when it ended. */
async function execute(program: string, args: string[], env: Record<string, string>, input = "") {
  // what is written to a name alone is left there
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", HOME: folder, ...env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(input);
  const [status] = (await once(child, "close")) as [number | null];
  return { status, stdout, stderr };
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-readme-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the README's snippets", () => {
  test("name npm scripts that there are", () => {
    const { scripts } = JSON.parse(readFileSync(fromRoot("package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = [...readme.matchAll(/npm (?:run ([\w:]+)|(test))/g)].map(
      ([, script, test]) => script ?? test!,
    );
    expect(named).toContain("demo");
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
  });

  test("the quick start works as it stands, against the gateway that the README offers", async () => {
    const [, simulate = ""] = /`npx runvault (simulate [^`]*)`/.exec(readme) ?? [];
    expect(simulate).not.toBe("");
    await writeFile(join(folder, "token"), "a-secret\n");
    const gateway = start([...simulate.split(" "), "--token-file", join(folder, "token")], {
      RUNVAULT_CACHE: join(folder, "cache"),
    });
    try {
      const address = await gateway.firstLine();
      const [, snippet = ""] = blocks("sh");
      const places = new Map([
        ["https://gateway.example.com/api/v1", address],
        ["~/.config/runvault/token", join(folder, "token")],
        ["/data/archive", join(folder, "archive")],
      ]);
      let script = snippet;
      for (const [written, real] of places) {
        expect(script).toContain(written);
        script = script.replaceAll(written, real);
      }
      // npm ci is done already, and npx finds runvault in an installed package only
      const shims = `set -eu\nnpm() { :; }\nnpx() { shift; "$NODE" "$MAIN" "$@"; }\n`;
      const { NODE_COMPILE_CACHE = "" } = process.env;
      const env = { NODE: process.execPath, MAIN: builtMain, NODE_COMPILE_CACHE };
      const done = await execute("sh", ["-s"], env, shims + script);
      expect(done).toMatchObject({ status: 0 });
      expect(done.stdout).toContain("nothing was fetched");
      expect(done.stdout).toMatch(/^alpha-1\/2022-01-01-001 {2}COMPLETE/m);
      expect(done.stdout).toMatch(/^alpha-1\/2022-01-01-001 {2}verified/m);
      expect(done.stdout).toMatch(/^symbol +fills +turnover$/m);
      expect(done.stdout + done.stderr).not.toContain("a-secret");
    } finally {
      gateway.child.kill("SIGTERM");
      await gateway.finished;
    }
  });

  test.skipIf(!requires("notebook"))("the notebook finds the rows of the archived run", async () => {
    const [snippet = ""] = blocks("python");
    expect(snippet).toContain("/data/archive");
    const script = snippet.replaceAll("/data/archive", join(folder, "archive"));
    const done = await execute("python3", ["-"], {}, `${script}\nprint(len(fills.df()))\n`);
    expect(done).toMatchObject({ status: 0, stderr: "" });
    const sql = "SELECT count(*) FROM fills WHERE run_id = '2022-01-01-001'";
    const { stdout } = await runInside(["query", "--archive", join(folder, "archive"), "-f", "csv", sql]);
    expect(done.stdout.trim()).toBe(stdout.trim().split("\n").at(-1));
    expect(Number(done.stdout)).toBeGreaterThan(0);
  });
});

describe("the documents", () => {
  test.each([
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/ADD_A_TABLE.md",
    "docs/proof.md",
    "docs/reliability.md",
    "docs/performance.md",
  ])("%s links to files that there are", (document) => {
    const text = readFileSync(fromRoot(document), "utf8");
    const links = [...text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)].map(([, link]) =>
      posix.join(posix.dirname(document), link!),
    );
    const missing = links.filter((link) => !existsSync(fromRoot(link)));
    expect(missing).toEqual([]);
  });

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
    expect(files.filter((file) => file !== "dist" && !existsSync(fromRoot(file)))).toEqual([]);
  });
});

describe("the README's tables", () => {
  test("name every command there is, and flags and variables that there are", async () => {
    const { stdout: help } = await runInside(["--help"]);
    const [, section = ""] = /^Commands:\n(.*?)\n\n/ms.exec(help) ?? [];
    const commands = [...section.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name!);
    const named = tableUnder("Commands").map(([cell]) => /^`runvault (\w+)/.exec(cell!)?.[1]);
    expect([...named, "help"].sort()).toEqual(commands.sort());

    const helps = await Promise.all(named.map(async (name) => (await runInside([name!, "--help"])).stdout));
    const known = [help, ...helps].join("\n");
    const flags = new Set(readme.match(/(?<![\w-])--[a-z][a-z-]+/g));
    const variables = new Set(readme.match(/RUNVAULT_[A-Z_]+/g));
    expect(flags.size).toBeGreaterThan(5);
    for (const word of [...flags, ...variables]) expect(known).toMatch(new RegExp(`${word}(?![\\w-])`));
  });

  test("give the exit codes that there are, which of several counts, and after which a retry helps", () => {
    const rows = tableUnder("Exit codes");
    const codes = rows.flatMap(([cell]) => cell!.split(", ").map(Number));
    expect(codes).toEqual(Object.values(exit));
    const [, several = ""] = /Where several apply, the first of ([\d, ]+) is the one/.exec(readme) ?? [];
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
    expect(section).toContain(
      `Of several the first of ${ranked.join(", ")}. A retry helps after ${retried}.`,
    );
  });
});
