import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Layout } from "../../src/archive/layout.ts";
import { lockAllRuns, lockArchive, lockRun, lockRunNow } from "../../src/archive/lock.ts";
import { FolderStore } from "../../src/archive/storage/folder-store.ts";

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

test("all runs at once are those that ever had a job, and none stays locked where one is not free", async () => {
  const runs = ["a", "b", "c"].map((runId) => ({ ...run, runId }));
  for (const each of runs) await (await lockRun(layout, each))[Symbol.asyncDispose]();
  {
    await using _all = await lockAllRuns({ layout, store: new FolderStore(layout) });
    for (const each of runs) await expect(lockRun(layout, each)).rejects.toMatchObject({ code: "locked" });
  }
  await using _last = await lockRun(layout, runs[2]!);
  await expect(lockAllRuns({ layout, store: new FolderStore(layout) })).rejects.toMatchObject({
    code: "locked",
  });
  for (const each of runs.slice(0, 2)) await (await lockRun(layout, each))[Symbol.asyncDispose]();
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

test("a lock whose file was removed meanwhile is given back without a word", async () => {
  const lock = await lockRun(layout, run);
  await rm(layout.locksDir, { recursive: true });
  await lock[Symbol.asyncDispose]();
  await using _again = await lockRun(layout, run);
});
