import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Archive } from "../../src/archive/archive.ts";
import { lockRun } from "../../src/archive/lock.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { run } from "../fixtures/command/command-process.ts";
import { expectRefusal } from "../fixtures/command/refusal.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

/** Says that it was asked, once. */
class NoticedSource extends ArraySource {
  override async runs(instanceId?: string) {
    onAsked();
    return await super.runs(instanceId);
  }
}
let onAsked = () => {};

let folder: string;
let archive: Archive;
let served: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-locked-"));
  const source = new NoticedSource(worldRun, smallWorld());
  ({ archive } = await archiveWorld(join(folder, "archive"), source, { tables: ["fills"] }));
  served = await serve({ source, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await served.close();
  await rm(folder, { recursive: true, force: true });
});

it("a job on a run that another process works on exits with 6, names that process, and changes nothing", async () => {
  const archiving = ["archive", "alpha/2022-01-01", "--gateway", served.url, "--archive", archive.dir];
  const before = await readFile(archive.layout.manifestFile(worldRun));
  {
    await using _held = await lockRun(archive.layout, worldRun);
    const says = [`pid ${process.pid}`, "Wait for it to end"];
    await expectRefusal(archiving, { status: 6, code: "locked", says }, (args) => run(args));
    expect(await readFile(archive.layout.manifestFile(worldRun))).toEqual(before);
  }
  expect(await run(archiving)).toMatchObject({ status: 0 });
});

it("a job on a run that another process has for a moment, as garbage collection does, waits for it", async () => {
  const archiving = ["archive", "alpha/2022-01-01", "--gateway", served.url, "--archive", archive.dir];
  const held = await lockRun(archive.layout, worldRun);
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve;
  });
  const finished = run(archiving);
  await asked;
  await setTimeout(700);
  await held[Symbol.asyncDispose]();
  expect(await finished).toMatchObject({ status: 0 });
});
