import { copyFile, mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { lockRun } from "../../src/archive/lock.ts";
import { holdForReading } from "../../src/archive/read/readings.ts";
import { type CollectOptions, collectGarbage } from "../../src/archive/upkeep/collect-garbage.ts";
import type { RunvaultError } from "../../src/model/error.ts";
import { wallClock } from "../../src/model/time.ts";
import { treeOf } from "../fixtures/archive/folder-tree.ts";
import { RebuildWorld, second } from "../fixtures/archive/rebuild-world.ts";
import { at, hours, run } from "../fixtures/archive/table-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

const day = 86_400_000_000_000n;
const gone = { instanceId: "gone", runId: "2021-01-01" };

/** An archive of two runs, of which each test has a copy. */
let made: RebuildWorld;
beforeAll(async () => {
  made = await RebuildWorld.create();
  for (const of of [run, second]) await made.archiveFills(of);
});
afterAll(() => made[Symbol.asyncDispose]());

let under: RebuildWorld;
beforeEach(async () => {
  under = await RebuildWorld.create(made.archive.dir);
});
afterEach(() => under[Symbol.asyncDispose]());

/** Collects as two days later, and gives what went and what stayed, where there is any. */
async function collect(more: Partial<CollectOptions> = {}) {
  const failures: RunvaultError[] = [];
  const { removed, kept } = await collectGarbage(under.archive, {
    graceNs: day,
    clock: () => wallClock() + 2n * day,
    onFailure: (error) => failures.push(error),
    ...more,
  });
  const some = (tallies: typeof removed | typeof kept) =>
    Object.fromEntries(
      Object.entries(tallies).flatMap(([name, { files }]) => (files === 0 ? [] : [[name, files]])),
    );
  return { removed: some(removed), kept: some(kept), tallies: { removed, kept }, failures };
}

/** What is in the archive, but for folders of locks, which come and go with these. */
async function tree() {
  const found = await treeOf(under.archive.dir);
  for (const path of found.keys()) if (/^locks\/[^.][^/]*$/.test(path)) found.delete(path);
  return found;
}

/** Of each kind of garbage one in each folder, and beside it what nobody may touch. */
async function plant(): Promise<void> {
  const { layout } = under.archive;
  const put = async (path: string) => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, path);
  };
  for (const of of [run, gone]) {
    await put(join(layout.dataDir(of), "fills.g9.000001.parquet"));
    await put(join(layout.dataDir(of), ".fills.g9.000001.parquet.77-1.part"));
    await put(join(layout.quarantineDir(of), "fills.g9.000002.quarantine.ndjson"));
    await put(join(layout.tableDir("fills", of), "2031.parquet"));
    await put(join(layout.tableDir("fills", of), ".77.part"));
    await put(join(layout.stagingDir(of), "duckdb_temp_storage-0.tmp"));
    await put(join(layout.stagingDir(of), "fills.g9.000003.parquet"));
    await put(join(layout.pendingDir(of), "fills.g9.000004.ndjson.zst"));
    await put(join(layout.pendingDir(of), "journal.ndjson"));
    await put(`${layout.cacheFile(of).replace(/([^/]+)$/, ".$1")}.77-1.part`);
    await put(`${layout.manifestFile(of).replace(/([^/]+)$/, ".$1")}.77-1.part`);
  }
  await put(layout.cacheFile(gone));
  await mkdir(dirname(layout.lockFile(gone)), { recursive: true });
  const minuteAgo = Date.now() - 60_000;
  {
    // as a kill leaves them
    await using _lock = await lockRun(layout, run);
    await copyFile(layout.lockFile(run), layout.lockFile(gone));
    await copyFile(layout.lockFile(run), layout.readingFile(minuteAgo, "1-1"));
  }
  // cut off by a kill
  await put(layout.readingFile(minuteAgo - 1, "1-1"));
  for (const name of [".archive.json.77-1.part", ".sources.json.77-1.part"])
    await put(join(layout.dir, name));
  await put(join(layout.jobsDir, ".rebuild-0123456789abcdef.json.77-1.part"));
}

async function plantForeign(): Promise<void> {
  const { layout } = under.archive;
  const outside = join(dirname(layout.dir), "outside");
  await mkdir(join(outside, "2022-01-01"), { recursive: true });
  const file = join(outside, "2022-01-01", "fills.g9.000001.parquet");
  await writeFile(file, "somebody's");
  await writeFile(join(layout.dataDir(run), "notes.txt"), "somebody's");
  await writeFile(join(layout.locksDir, "notes.txt"), "somebody's");
  await writeFile(join(layout.tableDir("fills", run), "mine.parquet"), "somebody's");
  await symlink(file, join(layout.dataDir(run), "fills.g9.000008.parquet"));
  await symlink(file, join(layout.tableDir("fills", run), "2032.parquet"));
  await symlink(outside, join(layout.dir, "data", "linked"));
  await symlink(outside, join(layout.dir, "tables", "fills", "linked"));
}

test("what no manifest names goes, of each kind in each folder, and what is not ours stays", async () => {
  await plantForeign();
  const before = await tree();
  await plant();
  const planted = await tree();
  const young = await collect({ clock: wallClock });
  expect(young).toMatchObject({ removed: {}, kept: { young: 28 }, failures: [] });
  const told = await collect({ dryRun: true });
  expect(await tree()).toEqual(planted);
  const done = await collect();
  expect(done).toEqual(told);
  expect(done).toMatchObject({
    removed: { unnamed: 4, work: 8, links: 2, cache: 1, locks: 3, halfWritten: 11 },
    kept: {},
    failures: [],
  });
  const left = await tree();
  // empty folders of a run that has work no more
  for (const [path, what] of left) if (what === "folder" && !before.has(path)) left.delete(path);
  expect(left).toEqual(before);
  expect(await collect()).toMatchObject({ removed: {}, kept: {} });
  for (const of of [run, second]) await under.expectVerifiedDeep(of);
});

test("generations before the last go once nobody reads them, and none is gone that is named", async () => {
  const first = await tree();
  const reader = await holdForReading(under.archive.layout);
  const now = wallClock();
  await under.rebuild(run, 1, now);
  await under.rebuild(run, 2, now);
  const parquet = async () =>
    (await readdir(under.archive.layout.dataDir(run))).filter((name) => name.endsWith(".parquet"));
  expect((await parquet()).length).toBe(3);
  expect(await collect()).toMatchObject({ removed: {}, kept: { reading: 2 } });
  expect((await parquet()).length).toBe(3);
  await reader[Symbol.asyncDispose]();
  await collect();
  expect(await parquet()).toEqual(
    (await under.archive.manifest(run))!.tables.fills!.proven!.parquet.map(({ file }) => file),
  );
  const names = [...(await tree()).keys()].filter((path) => !path.startsWith("cache"));
  expect(names.length).toBe(first.size);
  await under.expectVerifiedDeep(run);
});

test("a run that a job works on is passed over, and work that the next job goes on with stays", async () => {
  const { place, archive } = under;
  const source = new ArraySource(gone, new Map([["fills", rowsAt(gone, "fills", hours(40).map(at))]]));
  const whole = await tree();
  const killed = new Error("killed");
  const until = (step: string) => (name: string) => {
    if (name === step) throw killed;
  };
  for (const step of ["segment-journalled", "parquet-journalled", "commit-moved-one", "commit-moved"]) {
    await expect(place.archiveRun(source, { run: gone, step: until(step) })).rejects.toThrow("killed");
    const left = await tree();
    expect(Object.keys((await collect()).removed)).toEqual([]);
    expect(await tree()).toEqual(left);
  }
  {
    await using _job = await lockRun(archive.layout, gone);
    await writeFile(join(archive.layout.stagingDir(gone), "fills.g1.000099.parquet"), "half");
    expect(await collect()).toMatchObject({ removed: {}, kept: { running: 1 } });
  }
  expect((await collect()).removed).toEqual({ work: 1 });
  await place.archiveRun(source, { run: gone });
  expect((await collect()).removed).toEqual({});
  await under.expectVerifiedDeep(gone);
  for (const path of whole.keys()) expect((await tree()).has(path), path).toBe(true);
});

test("a job that meets a run in the middle of its collection waits for that, and goes on", async () => {
  const { place, archive } = under;
  const file = join(archive.layout.dataDir(run), "fills.g9.000001.parquet");
  await writeFile(file, "named by no manifest");
  const rows = new Map([["fills" as const, rowsAt(run, "fills", hours(40).map(at))]]);
  let job: Promise<unknown> | undefined;
  const found = await collect({
    step: () => {
      job ??= place.archiveRun(new ArraySource(run, rows));
    },
  });
  expect(found.removed).toEqual({ unnamed: 1 });
  expect(await job).toMatchObject({ manifest: { state: "COMPLETE" } });
});

test("a manifest that cannot be read has nothing removed of its run, and the others are collected", async () => {
  const { layout } = under.archive;
  await plant();
  await writeFile(layout.manifestFile(run), "{");
  const before = await treeOf(layout.dataDir(run));
  const { removed, failures } = await collect();
  expect(failures.map(({ code }) => code)).toEqual(["archive_damaged"]);
  expect(removed).toMatchObject({ unnamed: 2, locks: 3 });
  expect(await treeOf(layout.dataDir(run))).toEqual(before);
});

test("an archive whose manifests are all gone keeps its files, and one with a link for a folder is left alone", async () => {
  const { layout } = under.archive;
  await rename(layout.runsDir, `${layout.dir}-runs`);
  const before = await tree();
  const files = [...before.keys()].filter((path) => /^(?:data|tables)[/].*[.]/.test(path));
  expect(await collect()).toMatchObject({ removed: {}, kept: { noManifests: files.length } });
  expect(await tree()).toEqual(before);
  await symlink(`${layout.dir}-runs`, layout.runsDir);
  const tables = await tree();
  await expect(collect()).rejects.toMatchObject({ code: "archive_damaged" });
  expect(await tree()).toEqual(tables);
});

test("a collection that is killed anywhere leaves what the next one collects", async () => {
  const before = await tree();
  await plant();
  const killed = new Error("killed");
  for (let steps = 1; ; steps++) {
    let left = steps % 4;
    const step = () => {
      if (--left === 0) throw killed;
    };
    const { failures } = await collect({ step }).catch(() => ({ failures: [] }));
    for (const of of [run, second]) expect(await under.archive.manifest(of)).not.toBeNull();
    if (failures.length === 0 && steps % 4 === 0) break;
  }
  const after = await tree();
  for (const [path, what] of after) if (what === "folder" && !before.has(path)) after.delete(path);
  expect(after).toEqual(before);
});
