import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { masked } from "../fixtures/command/console-document.ts";
import { builtMain, inProject as fromRoot } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

const readme = readFileSync(fromRoot("README.md"), "utf8");

/** The README's fenced blocks of a language. */
function blocks(language: string): string[] {
  return [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , text]) => text!);
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

/** npx finds runvault in the project's folder, and in an installed package. */
const npxOutside = `set -eu\nnpx() { shift; "$NODE" "$MAIN" "$@"; }\n`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-readme-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the README's snippets", () => {
  test("your gateway and SQL work as they stand, with the gateway that the README offers", async () => {
    const [, simulate = ""] = /`npx runvault (simulate[^`]*)`/.exec(readme) ?? [];
    expect(simulate).not.toBe("");
    await writeFile(join(folder, "token"), "a-secret\n");
    const gateway = start([...simulate.split(" "), "--token-file", join(folder, "token")], {
      RUNVAULT_CACHE: join(folder, "cache"),
    });
    try {
      const address = await gateway.firstLine();
      const [snippet = ""] = blocks("sh").filter((block) => block.includes("RUNVAULT_GATEWAY="));
      const [, , reading = ""] = blocks("sh");
      const places = new Map([
        ["https://gateway.example.com/api/v1", address],
        ["/data/archive", join(folder, "archive")],
      ]);
      let script = snippet;
      for (const [written, real] of places) {
        expect(script).toContain(written);
        script = script.replaceAll(written, real);
      }
      // what serves does so until it is stopped
      script += reading.replace(/^npx runvault serve .*$/m, "");
      const { NODE_COMPILE_CACHE = "" } = process.env;
      const env = { NODE: process.execPath, MAIN: builtMain, NODE_COMPILE_CACHE };
      expect(readme).toContain("`RUNVAULT_TOKEN_FILE`");
      Object.assign(env, { RUNVAULT_TOKEN_FILE: join(folder, "token") });
      const done = await execute("sh", ["-s"], env, npxOutside + script);
      expect(done).toMatchObject({ status: 0 });
      expect(done.stdout).toContain("nothing was fetched");
      expect(done.stdout).toMatch(/^alpha-1\/2022-01-01-001 {2}COMPLETE/m);
      expect(done.stdout).toMatch(/^alpha-1\/2022-01-01-001 {2}verified/m);
      expect(done.stdout).toMatch(/^symbol +fills +turnover$/m);
      for (const written of ["run.html", "research/one-run.ipynb"])
        expect((await stat(join(folder, written))).size).toBeGreaterThan(5000);
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
    const done = await execute("python3", ["-"], {}, `${script}\nprint(len(fills))\n`);
    expect(done).toMatchObject({ status: 0, stderr: "" });
    const sql = "SELECT count(*) FROM fills WHERE run_id = '2022-01-01-001'";
    const { stdout } = await runInside(["query", "--archive", join(folder, "archive"), "-f", "csv", sql]);
    expect(done.stdout.trim()).toBe(stdout.trim().split("\n").at(-1));
    expect(Number(done.stdout)).toBeGreaterThan(0);
  });
});

describe("the demo", () => {
  test("prints what the README shows, and leaves an archive, a page and a notebook", {
    timeout: 240_000,
  }, async () => {
    const keep = join(folder, "demo");
    const demo = await execute(process.execPath, [builtMain, "demo", "--keep", keep], {
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "",
    });
    expect(demo).toMatchObject({ status: 0 });
    // the folder has another name each time, and the gateway another port
    const comparable = (text: string) =>
      masked(text.replaceAll(keep, "DEMO").replaceAll(/\/tmp\/runvault-demo-\w+/g, "DEMO"))
        .replaceAll(/:\d{4,5}\b/g, ":PORT")
        .split("\n");
    const printed = comparable(demo.stdout);
    const [shown = ""] = blocks("text");
    expect(shown).toContain("run.ipynb");
    expect(comparable(shown).filter((line) => !printed.includes(line))).toEqual([]);
    for (const left of ["run.html", "run.ipynb", "run.duckdb", "archive/archive.json"])
      expect((await stat(join(keep, left))).size).toBeGreaterThan(0);
  });

  test("takes its gateway with it when it is stopped", async () => {
    const demo = start(["demo", "--keep", join(folder, "stopped")]);
    await demo.seen("the gateway answers at ");
    demo.child.kill("SIGTERM");
    const { status, stdout } = await demo.finished;
    expect(status).toBe(143);
    const [, address = ""] = /answers at (\S+)/.exec(stdout) ?? [];
    await expect(fetch(address)).rejects.toThrow();
  });
});
