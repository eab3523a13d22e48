import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { start } from "../fixtures/command/command-process.ts";
import { builtMain, inProject } from "../fixtures/command/project.ts";

const text = readFileSync(inProject("docs/operations.md"), "utf8");

/** The document's code blocks of a language that hold these words. */
function block(language: string, words: string): string {
  const found = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(
    ([, own, code]) => own === language && code!.includes(words),
  );
  expect(found).toHaveLength(1);
  return found[0]![2]!;
}

/** Blocks that a test of this file runs, by words of theirs. */
const run = new Set<string>();

let folder: string;
let gateway: ReturnType<typeof start>;
let env: Record<string, string>;

/** Runs a block in a shell, its folders below a temporary one; ends at the first command that fails. */
function sh(
  language: string,
  words: string,
  more: Record<string, string> = {},
  edit = (code: string) => code,
) {
  run.add(words);
  const group = spawnSync("id", ["-gn"], { encoding: "utf8" }).stdout.trim();
  const code = block(language, words)
    .replaceAll("/data/", `${folder}/data/`)
    .replaceAll("/backup", `${folder}/backup`)
    .replaceAll("quants", group);
  const options = { env: { ...env, ...more }, cwd: folder, encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync("sh", ["-euc", edit(code)], options);
  expect([status, stderr]).toEqual([0, expect.not.stringContaining("runvault:")]);
  return stdout;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-operations-"));
  const shim = join(folder, "bin", "runvault");
  await mkdir(join(folder, "bin"));
  await mkdir(join(folder, "data"));
  await writeFile(shim, `#!/bin/sh\nexec "${process.execPath}" "${builtMain}" "$@"\n`);
  await chmod(shim, 0o755);
  gateway = start(["simulate", "--rows", "500", "--runs", "2", "--cache", join(folder, "cache")]);
  env = {
    PATH: `${join(folder, "bin")}:${process.env.PATH}`,
    HOME: folder,
    RUNVAULT_ARCHIVE: join(folder, "data", "archive"),
    RUNVAULT_GATEWAY: await gateway.firstLine(),
  };
});
afterAll(async () => {
  gateway.child.kill("SIGTERM");
  await gateway.finished;
  await rm(folder, { recursive: true });
});

test("a folder made for a group, with either line, keeps its bits", async () => {
  sh("sh", "install -d -m 2750");
  expect((await stat(env.RUNVAULT_ARCHIVE!)).mode & 0o7777).toBe(0o2770);
});

test("what is scheduled does its work", () => {
  const stdout = sh("crontab", "archive --all", {}, (code) => code.replaceAll(/^(\S+\s+){5}/gm, ""));
  expect(stdout.match(/ {2}COMPLETE {2}/g)).toHaveLength(2);
  // those committed lately, a sample of all, and all in depth
  expect(stdout.match(/ {2}verified: /g)).toHaveLength(6);
});

test("an archive that is there is opened for a group", async () => {
  sh("sh", "chgrp -R");
  expect((await stat(join(env.RUNVAULT_ARCHIVE!, "runs"))).mode & 0o2050).toBe(0o2050);
});

test("status and runs say what is there", () => {
  const stdout = sh("sh", "runvault status");
  expect(stdout).toMatch(/^runs +2: 2 COMPLETE$/m);
  expect(stdout).toMatch(/^no runs in these states; 2 runs in other states$/m);
});

test("a backup is whole without links, and a restored one has them again", async () => {
  expect(sh("sh", "mkdir -p /backup")).toMatch(/verified: .*\n[\s\S]*missing from the folder of the table/);
  const stdout = sh("sh", "--links");
  expect(stdout).toMatch(/^16 links made, of 2 runs$/m);
  expect(stdout).not.toContain("missing");
  const { nlink } = await stat(join(folder, "data/restored/tables/fills/alpha-1/2022-01-01-001/all.parquet"));
  expect(nlink).toBe(2);
});

test("old runs are shown, and removed", () => {
  const stdout = sh("sh", "rm --older-than");
  expect(stdout).toMatch(/^would remove 2 runs, (.*)\n[\s\S]*^removed 2 runs, \1$/m);
});

test("garbage is collected, of which there is none yet that is old enough", () => {
  const stdout = sh("sh", "runvault gc");
  expect(stdout).toMatch(/^would remove 0 files, 0 B\n[\s\S]*^removed 0 files, 0 B$/m);
});

test("an access log is rotated", async () => {
  const server = start([
    "serve",
    "--archive",
    env.RUNVAULT_ARCHIVE!,
    "--access-log",
    join(folder, "access.ndjson"),
  ]);
  try {
    const url = await server.firstLine();
    const lines = async (file: string) =>
      (await readFile(join(folder, file), "utf8").catch(() => "")).split("\n").length - 1;
    await fetch(`${url}/health`);
    await expect.poll(() => lines("access.ndjson")).toBe(1);
    sh("sh", "kill -HUP", { SERVE_PID: String(server.child.pid) });
    // there without a request, for the former may be compressed from then on
    await expect.poll(() => stat(join(folder, "access.ndjson")).catch(() => null)).not.toBeNull();
    await fetch(`${url}/health`);
    await expect.poll(() => lines("access.ndjson")).toBe(1);
    expect(await lines("access.ndjson.1")).toBe(1);
  } finally {
    server.child.kill("SIGTERM");
    expect((await server.finished).status).toBe(0);
  }
});

test("every command of the document was run", () => {
  const blocks = [...text.matchAll(/^```(?:sh|crontab)\n(.*?)^```$/gms)].map(([, code]) => code!);
  expect(blocks.filter((code) => ![...run].some((words) => code.includes(words)))).toEqual([]);
});
