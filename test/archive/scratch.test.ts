// @module-tag slow
import { existsSync } from "node:fs";
import { chown, cp, mkdir, mkdtemp, readdir, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { removeRun } from "../../src/archive/upkeep/remove.ts";
import { planRun } from "../../src/extract/plan/plan-run.ts";
import { rebuildRun } from "../../src/extract/rebuild/rebuild-run.ts";
import { archiveRun, defaultSettings } from "../../src/extract/run/archive-run.ts";
import { failedChecks, smallWorld, verifyAll, worldRun } from "../fixtures/archive/archived-world.ts";
import { treeOf } from "../fixtures/archive/folder-tree.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { diskFolderVariable } from "../fixtures/command/scratch.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
/** On another disk than the archive where this machine has two. */
let elsewhere: string;
let dir: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-scratch-"));
  elsewhere = await mkdtemp(join(process.env[diskFolderVariable] ?? tmpdir(), "runvault-elsewhere-"));
  dir = join(folder, "archive");
});
afterEach(async () => {
  for (const made of [folder, elsewhere]) await rm(made, { recursive: true, force: true });
});

interface Job {
  readonly scratch?: string | undefined;
  readonly dir?: string;
  /** Kills the job at the nth time of a step. */
  readonly until?: readonly [step: string, times: number];
  readonly rows?: number;
}

async function archive({ scratch, until, rows = 25, ...more }: Job = {}) {
  const made = await openArchive(more.dir ?? dir, { create: true, scratch });
  let left = until?.[1] ?? 0;
  const source = new ArraySource(worldRun, smallWorld(rows));
  source.storageVersion = String(rows);
  return await archiveRun({
    source,
    archive: made,
    run: worldRun,
    tables: ["fills", "bars"],
    clock: () => 1_740_995_200_000_000_000n,
    retry: quickRetry(),
    signal: new AbortController().signal,
    tool: "test",
    duckdb: sharedDuckDB,
    settings: { segmentBytes: 4000, sliceRows: 20, concurrency: 1 },
    step: (name) => {
      if (name === until?.[0] && --left === 0) throw new Error("killed");
    },
  });
}

async function killed(job: Job & Required<Pick<Job, "until">>): Promise<void> {
  await expect(archive(job)).rejects.toThrow("killed");
}

async function expectWhole(at = dir): Promise<void> {
  const reports = await verifyAll(await openArchive(at));
  expect(reports.map(failedChecks)).toEqual([[]]);
  expect((await filesIn(at)).filter(({ name }) => name.endsWith(".part"))).toEqual([]);
}

const filesIn = async (root: string) =>
  (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
const bitsOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

/** A scratch folder beside the archive, and one that is on another disk where there is one. */
const places = {
  beside: () => join(folder, "scratch"),
  elsewhere: () => join(elsewhere, "deep", "scratch"),
};

describe.each(["beside", "elsewhere"] as const)("a scratch folder %s of the archive", (place) => {
  it("holds the work of a job, for its owner alone, and nothing once it is committed", async () => {
    const scratch = places[place]();
    await mkdir(dir, { mode: 0o755 });
    await killed({ scratch, until: ["segment-journalled", 2] });
    const [area] = await readdir(scratch);
    expect(area).toMatch(/^[0-9a-f-]{36}-[0-9a-f]{8}$/);
    expect(existsSync(join(dir, "pending"))).toBe(false);
    expect(existsSync(join(dir, "staging"))).toBe(false);
    const files = await filesIn(join(scratch, area!));
    expect(files.length).toBeGreaterThan(2);
    for (const { parentPath, name } of files) {
      expect(await bitsOf(join(parentPath, name))).toBe("600");
      expect(await bitsOf(parentPath)).toBe("700");
    }
    const { resumedSegments } = await archive({ scratch });
    expect(resumedSegments).toBeGreaterThanOrEqual(2);
    await expectWhole();
    expect(await filesIn(scratch)).toEqual([]);
    // what is committed follows the archive's root
    for (const { parentPath, name } of await filesIn(join(dir, "data")))
      expect(await bitsOf(join(parentPath, name))).toBe("644");
  });

  // on one disk a commit is what it is without a scratch folder
  const kills = {
    beside: [["commit-moved-one", 3]],
    elsewhere: [
      ["commit-moved-one", 1],
      ["commit-moved-one", 3],
      ["commit-moved", 1],
      ["manifest-written", 1],
      ["manifest-renamed", 1],
      ["links-refreshed", 1],
    ],
  } as const;
  it.each<readonly [string, number]>(kills[place])(
    "commits once only, also after a kill at %s:%d",
    async (step, times) => {
      const scratch = places[place]();
      await killed({ scratch, until: [step, times] });
      await archive({ scratch });
      await expectWhole();
      expect(await filesIn(scratch)).toEqual([]);
      await archive({ scratch, rows: 30 });
      await expectWhole();
    },
  );

  it.each(["another", "none"])(
    "that is another, or none, the next time (%s) costs fetching again",
    async (next) => {
      const scratch = places[place]();
      await killed({ scratch, until: ["segment-journalled", 2] });
      const { resumedSegments } = await archive({
        scratch: next === "none" ? undefined : join(folder, "second"),
      });
      expect(resumedSegments).toBe(0);
      await expectWhole();
      // what the first left is of a generation that is committed by now: it counts for nothing
      await archive({ scratch, rows: 30 });
      expect(await filesIn(scratch)).toEqual([]);
      await expectWhole();
    },
  );

  it("takes a rebuild, and is left without what a removed run had there", async () => {
    const scratch = places[place]();
    await archive({ scratch });
    const opened = await openArchive(dir, { scratch });
    const { signal } = new AbortController();
    await rebuildRun({
      archive: opened,
      run: worldRun,
      upTo: 1,
      clock: () => 0n,
      signal,
      tool: "test",
      duckdb: sharedDuckDB,
    });
    await expectWhole();
    await killed({ scratch, rows: 30, until: ["segment-journalled", 1] });
    expect(await filesIn(scratch)).not.toEqual([]);
    await removeRun(opened, worldRun);
    expect(await filesIn(scratch)).toEqual([]);
  });
});

it("work that a job left in the archive goes once a job with a scratch folder has committed", async () => {
  await killed({ until: ["segment-journalled", 2] });
  expect(existsSync(join(dir, "pending/alpha/2022-01-01/journal.ndjson"))).toBe(true);
  await archive({ scratch: places.beside() });
  expect(await filesIn(join(dir, "pending"))).toEqual([]);
  await expectWhole();
});

it("archives share a scratch folder, and copies of one archive do, too", async () => {
  const scratch = places.beside();
  await archive({});
  const [other, copy] = [join(folder, "other"), join(folder, "copy")];
  await cp(dir, copy, { recursive: true });
  for (const at of [dir, copy])
    await killed({ dir: at, scratch, rows: 30, until: ["segment-journalled", 1] });
  await killed({ dir: other, scratch, until: ["segment-journalled", 1] });
  expect(await readdir(scratch)).toHaveLength(3);
  for (const at of [dir, copy, other]) {
    const { resumedSegments } = await archive({ dir: at, scratch, rows: 30 });
    // the other's were of a run of fewer rows
    expect(resumedSegments > 0).toBe(at !== other);
    await expectWhole(at);
  }
});

describe("a scratch folder is refused", () => {
  it.each(["", "scratch", "pending/x"])("in the archive: %s", async (name) => {
    await archive();
    await expect(openArchive(dir, { scratch: join(dir, name) })).rejects.toMatchObject({ exit: 2 });
    await symlink(dir, join(folder, "link"));
    await expect(openArchive(dir, { scratch: join(folder, "link", name) })).rejects.toMatchObject({
      exit: 2,
    });
  });

  it("in the archive, also where that is not made yet, and leaves nothing behind", async () => {
    await expect(archive({ scratch: join(dir, "scratch") })).rejects.toMatchObject({ exit: 2 });
    expect(existsSync(dir)).toBe(false);
  });

  it.skipIf(process.getuid?.() !== 0)("where its part for the archive is somebody else's", async () => {
    const scratch = places.beside();
    await archive({ scratch });
    await chown(join(scratch, (await readdir(scratch))[0]!), 65_534, 65_534);
    await expect(archive({ scratch, rows: 30 })).rejects.toMatchObject({ code: "storage_forbidden" });
  });

  it("where its part for the archive is a link", async () => {
    const scratch = places.beside();
    await archive({ scratch });
    const area = join(scratch, (await readdir(scratch))[0]!);
    await rm(area, { recursive: true });
    await mkdir(join(folder, "target"));
    await symlink(join(folder, "target"), area);
    await expect(archive({ scratch, rows: 30 })).rejects.toMatchObject({ code: "archive_damaged" });
    expect(await readdir(join(folder, "target"))).toEqual([]);
  });

  it("where it is a file, with exit status 2", async () => {
    await archive();
    const file = join(dir, "archive.json");
    const done = await runInside(["maintain", "rebuild", "--archive", dir, "--scratch", `${file}/x`]);
    expect(done).toMatchObject({ status: 2, stderr: expect.stringContaining(basename(file)) });
  });
});

it("a dry run plans by the work in the scratch folder that it is given, and changes nothing there", async () => {
  const scratch = places.beside();
  await killed({ scratch, until: ["segment-journalled", 2] });
  const source = new ArraySource(worldRun, smallWorld());
  source.storageVersion = "25";
  const plan = async (at: string | undefined) => {
    const { signal } = new AbortController();
    const opened = await openArchive(dir, { scratch: at });
    const { tables } = await planRun({
      source,
      archive: opened,
      folder: dir,
      scratch: at,
      run: worldRun,
      tables: ["fills", "bars"],
      settings: { ...defaultSettings, sliceRows: 20 },
      clock: () => 1_740_995_200_000_000_000n,
      retry: quickRetry(),
      signal,
    });
    return tables.reduce((sum, { rows }) => sum + (rows ?? 0), 0);
  };
  const before = await treeOf(scratch);
  expect(await plan(scratch)).toBeLessThan(50);
  expect(await plan(undefined)).toBe(50);
  expect(await treeOf(scratch)).toEqual(before);
});

it("RUNVAULT_SCRATCH is the same option", async () => {
  await archive();
  const scratch = places.beside();
  const done = await runInside(["maintain", "rebuild", "--archive", dir], {
    env: { RUNVAULT_SCRATCH: scratch },
  });
  expect(done.status).toBe(0);
  expect(await readdir(scratch)).toHaveLength(1);
  await expectWhole();
});
