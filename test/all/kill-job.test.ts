import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { lockHolder } from "../../src/archive/lock.ts";
import { lockJob } from "../../src/pipeline/record/job-lock.ts";
import { readRecords } from "../../src/pipeline/record/read-records.ts";
import { beginLine, resultLine, writeRecord } from "../fixtures/archive/job-records.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject } from "../fixtures/command/project.ts";

let folder: string;
let archive: Archive;
let job: ChildProcess | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-kill-job-"));
  archive = await openArchive(join(folder, "archive"), { create: true });
});
afterEach(async () => {
  job?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

async function start(what: "hold" | "again", ...host: string[]): Promise<ChildProcess> {
  const script = inProject("test/fixtures/command/job-process.ts");
  job = spawn(process.execPath, [script, archive.dir, "nightly", what, ...host], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (what === "hold") await once(createInterface(job.stdout!), "line");
  return job;
}

async function listed(): Promise<{ id: string; state: string }[]> {
  const { status, stdout } = await runInside(["jobs", "--json", "--archive", archive.dir]);
  expect(status).toBe(0);
  return JSON.parse(stdout).executions.map(({ id, state }: { id: string; state: string }) => ({ id, state }));
}

it("a job that is killed is shown as running until then, as died afterwards, and what it recorded is there", async () => {
  await writeRecord(archive.layout, beginLine(1), resultLine());
  const child = await start("hold");
  const ended = { id: "00000001", state: "ended" };
  expect(await listed()).toEqual([{ id: "00000002", state: "running" }, ended]);
  const gc = await runInside(["gc", "--grace", "0s", "--archive", archive.dir]);
  expect(gc).toMatchObject({ status: 0, stdout: "removed 0 files, 0 B\n" });
  await expect(lockJob(archive.layout, "nightly")).rejects.toMatchObject({
    code: "locked",
    message: expect.stringContaining(`(pid ${child.pid} on `),
  });
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await listed()).toEqual([{ id: "00000002", state: "died" }, ended]);
  const { stdout } = await runInside(["jobs", "show", "last", "--archive", archive.dir]);
  expect(stdout).toMatch(/^execution +00000002 of nightly: died\n/);
  for await (const record of readRecords(archive.layout)) {
    let lines = 0;
    for await (const _ of record.lines()) lines += 1;
    expect(lines).toBeGreaterThan(100);
    break;
  }
  // whoever comes next finds the lock free
  await using _lock = await lockJob(archive.layout, "nightly");
});

it("a job of another machine is the newest without a result, and one that died is not taken for it", async () => {
  await writeRecord(archive.layout, beginLine(1, { host: "elsewhere" }));
  const child = await start("hold", "elsewhere");
  expect((await listed()).map(({ state }) => state)).toEqual(["running", "died"]);
  // of this machine, and of another process than that which has the lock
  await writeRecord(archive.layout, beginLine(3));
  expect((await listed()).map(({ state }) => state)).toEqual(["died", "running", "died"]);
  child.kill("SIGKILL");
  await once(child, "exit");
});

it("whoever looks keeps no job from starting", async () => {
  const child = await start("again");
  const exited = once(child, "exit");
  let looks = 0;
  while (child.exitCode === null) {
    const holder = await lockHolder(archive.layout, archive.layout.jobLockFile("nightly"));
    // it takes the lock a moment before it says so
    if (holder !== null) expect([null, child.pid]).toContain(holder.pid);
    looks += 1;
    // as often as many who look
    if (looks % 20 === 0) await new Promise((turn) => setImmediate(turn));
  }
  expect(await exited).toEqual([0, null]);
  expect(looks).toBeGreaterThan(100);
});
