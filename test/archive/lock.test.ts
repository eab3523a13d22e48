import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Layout } from "../../src/archive/layout.ts";
import { lockAllRuns, lockArchive, lockRun, lockRunInTurn, lockRunNow } from "../../src/archive/lock.ts";
import { FolderStore } from "../../src/archive/storage/folder-store.ts";
import type { RunRef } from "../../src/model/source.ts";

let folder: string;
let layout: Layout;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-lock-"));
  layout = new Layout(join(folder, "it's an archive"));
  await mkdir(layout.dir);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const run = { instanceId: "alpha", runId: "2022-01-01" };

test("a run is one job's until that gives it back, whatever else is locked meanwhile", async () => {
  const lock = await lockRun(layout, run);
  // names that differ in their case alone are two runs
  await using _other = await lockRun(layout, { ...run, instanceId: "Alpha" });
  await using _archive = await lockArchive(layout);
  const refusal = { code: "locked", message: expect.stringContaining(`pid ${process.pid}`) };
  await expect(lockRun(layout, run)).rejects.toMatchObject(refusal);
  await expect(lockAllRuns({ layout, store: new FolderStore(layout) })).rejects.toMatchObject(refusal);
  await lock[Symbol.asyncDispose]();
  await using _again = await lockRun(layout, run);
});

test("all runs at once are those that are archived or left half done, and none stays locked where one is not free", async () => {
  const runs = ["a", "b", "c"].map((runId) => ({ ...run, runId }));
  const [archived, pending, killed] = runs as [RunRef, RunRef, RunRef];
  await mkdir(dirname(layout.manifestFile(archived)), { recursive: true });
  await writeFile(layout.manifestFile(archived), "{}");
  await mkdir(layout.pendingDir(pending), { recursive: true });
  {
    await using _lock = await lockRun(layout, killed);
    await copyFile(layout.lockFile(killed), join(folder, "lock"));
  }
  await copyFile(join(folder, "lock"), layout.lockFile(killed));
  {
    await using _all = await lockAllRuns({ layout, store: new FolderStore(layout) });
    for (const each of runs) await expect(lockRun(layout, each)).rejects.toMatchObject({ code: "locked" });
  }
  await using _last = await lockRun(layout, killed);
  await expect(lockAllRuns({ layout, store: new FolderStore(layout) })).rejects.toMatchObject({
    code: "locked",
  });
  for (const each of runs.slice(0, 2)) await (await lockRun(layout, each))[Symbol.asyncDispose]();
});

test("the file of a run's lock goes with the lock, and whoever waits for it has the next one alone", async () => {
  const lock = await lockRun(layout, run);
  let holders = 0;
  const waiting = Array.from({ length: 8 }, async () => {
    await using _lock = await lockRunInTurn(layout, run, new AbortController().signal);
    expect(++holders).toBe(1);
    await setTimeout(20);
    holders--;
  });
  await setTimeout(100);
  await lock[Symbol.asyncDispose]();
  await Promise.all(waiting);
  expect(await readdir(dirname(layout.lockFile(run)))).toEqual([]);
});

test("a run that another has for a moment is waited for, and its signal ends the waiting", async () => {
  const lock = await lockRunNow(layout, run);
  await expect(lockRunNow(layout, run)).rejects.toMatchObject({ code: "locked" });
  const stop = new AbortController();
  const stopped = lockRun(layout, run, stop.signal);
  stop.abort(new Error("stopped"));
  await expect(stopped).rejects.toThrow("stopped");
  const waiting = lockRun(layout, run);
  const all = lockAllRuns({ layout, store: new FolderStore(layout) });
  await setTimeout(300);
  await lock[Symbol.asyncDispose]();
  const first = await Promise.race([waiting, all]);
  await first[Symbol.asyncDispose]();
  for (const held of await Promise.all([waiting, all])) if (held !== first) await held[Symbol.asyncDispose]();
});

// an empty file, or one of a single header, ended every later command on the run with "damaged"
test.each([
  ["nothing", (_: Buffer) => Buffer.alloc(0)],
  ["one header", (whole: Buffer) => whole.subarray(0, 4096)],
  ["two headers", (whole: Buffer) => whole.subarray(0, 8192)],
  ["zeros", (whole: Buffer) => Buffer.alloc(whole.length)],
])(
  "a lock's file of which a full disk left %s is made whole where it is, and is one lock",
  async (_, cut) => {
    const file = layout.lockFile(run);
    {
      await using _lock = await lockRun(layout, run);
      await copyFile(file, join(folder, "whole"));
    }
    await writeFile(file, cut(await readFile(join(folder, "whole"))));
    const { ino } = await stat(file);
    await using _lock = await lockRun(layout, run);
    expect((await stat(file)).ino).toBe(ino);
    await expect(lockRunNow(layout, run)).rejects.toMatchObject({ code: "locked" });
  },
);

test("what somebody else put in the place of a lock's file stays, and is called damaged", async () => {
  await mkdir(dirname(layout.lockFile(run)), { recursive: true });
  await writeFile(layout.lockFile(run), "notes of mine\n");
  await expect(lockRun(layout, run)).rejects.toMatchObject({ code: "archive_damaged" });
  expect(await readFile(layout.lockFile(run), "utf8")).toBe("notes of mine\n");
});

test("a lock whose file was removed meanwhile is given back without a word", async () => {
  const lock = await lockRun(layout, run);
  await rm(layout.locksDir, { recursive: true });
  await lock[Symbol.asyncDispose]();
  await using _again = await lockRun(layout, run);
});
