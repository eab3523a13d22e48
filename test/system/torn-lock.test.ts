// @module-tag slow
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Layout } from "../../src/archive/layout.ts";
import { inProject } from "../fixtures/command/project.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-torn-lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Takes the lock again and again, each time with a torn file in its place, and fails where another has it, too. */
const contender = (dir: string) => `
import { spawnSync } from "node:child_process";
import { open, rm } from "node:fs/promises";
const { Layout } = await import(${JSON.stringify(inProject("src/archive/layout.ts"))});
const { lockRunInTurn } = await import(${JSON.stringify(inProject("src/archive/lock.ts"))});
const layout = new Layout(${JSON.stringify(dir)});
const run = { instanceId: "alpha", runId: "2022-01-01" };
const alone = ${JSON.stringify(join(dir, "alone"))};
for (let round = 0; round < 20; round++) {
  const lock = await lockRunInTurn(layout, run, new AbortController().signal);
  await (await open(alone, "wx")).close();
  // while it is held, so that whoever comes meets it torn; to close a file here would give its lock back
  spawnSync("truncate", ["-s", String(4096 * (round % 3)), layout.lockFile(run)]);
  await new Promise((done) => setTimeout(done, 3));
  await rm(alone);
  await lock[Symbol.asyncDispose]();
}
`;

// made again under another inode, the file would be the lock of whoever comes next, beside that of who has it
it("a torn lock's file that several processes make whole at once is held by one of them at a time", async () => {
  const layout = new Layout(folder);
  const file = layout.lockFile({ instanceId: "alpha", runId: "2022-01-01" });
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, "");
  const script = join(folder, "contender.mjs");
  await writeFile(script, contender(folder));
  const ended = Array.from({ length: 3 }, () => {
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    return new Promise((done) => child.on("close", (status) => done({ status, stderr })));
  });
  expect(await Promise.all(ended)).toEqual(Array(3).fill({ status: 0, stderr: "" }));
  await expect(readFile(join(folder, "alone"))).rejects.toThrow("ENOENT");
});
