import { cpSync, existsSync } from "node:fs";
import { mkdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { lockRun } from "../../src/archive/lock.ts";
import { removeRun } from "../../src/archive/upkeep/remove.ts";
import { rebuildRun } from "../../src/extract/rebuild/rebuild-run.ts";
import { finishWidening, startWidening } from "../../src/extract/rebuild/widen.ts";
import {
  ArchiveUnderTest,
  archiveWorld,
  failedChecks,
  smallWorld,
  verifyAll,
  worldRun,
} from "../fixtures/archive/archived-world.ts";
import { treeOf } from "../fixtures/archive/folder-tree.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const tables = ["fills"] as const;
const fresh = { instanceId: "alpha", runId: "2022-01-09" };
const { signal } = new AbortController();
const step = () => {};

let under: ArchiveUnderTest;
/** A folder beside the archive, of somebody else. */
let outside: string;
beforeAll(async () => {
  under = await ArchiveUnderTest.create(tables);
  outside = join(under.folder, "outside");
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(async () => {
  await under.renew();
  await rm(outside, { recursive: true, force: true });
  await mkdir(outside);
});

function archiveInto(dir: string, run = worldRun, version = "1", rows = 25) {
  const source = new ArraySource(run, smallWorld(rows, run));
  source.storageVersion = version;
  return archiveWorld(dir, source, { tables });
}

function rebuild(upTo: number | null) {
  const { archive } = under;
  return rebuildRun({
    archive,
    run: worldRun,
    upTo,
    clock: () => 0n,
    signal,
    tool: "test",
    duckdb: sharedDuckDB,
  });
}

async function widen() {
  await startWidening(under.archive, { fills: { price: null } }, step);
  await rebuild(null);
  return await finishWidening(under.archive, step, signal);
}

/** Everything that writes or removes, as users come to it, with the run that it is about. */
const commands = [
  { command: "archive of a new run", run: fresh, work: () => archiveInto(under.archive.dir, fresh) },
  { command: "archive of a run up to date", run: worldRun, work: () => archiveInto(under.archive.dir) },
  {
    command: "archive of a run that changed",
    run: worldRun,
    work: () => archiveInto(under.archive.dir, worldRun, "2", 30),
  },
  { command: "rebuild", run: worldRun, work: () => rebuild(1) },
  { command: "rebuild --widen", run: worldRun, work: widen },
  { command: "rm", run: worldRun, work: () => removeRun(under.archive, worldRun) },
];

/** Every folder on the paths of a run, from the archive's root down. */
function foldersOf({ instanceId, runId }: typeof worldRun): string[] {
  const parts = (...names: string[]) => names.map((_, index) => names.slice(0, index + 1).join("/"));
  return [
    ...parts("tables", "fills", instanceId, runId),
    ...["data", "pending", "staging", "quarantine"].flatMap((top) => parts(top, instanceId, runId)),
    ...parts("runs", instanceId),
    ...parts("locks", instanceId),
    "jobs",
  ];
}

/** Moves what is there out of the archive, and puts a link in its place. Gives what puts it right again. */
async function linkOut(path: string): Promise<() => Promise<void>> {
  const target = join(outside, "target");
  const wasThere = existsSync(path);
  if (wasThere) await rename(path, target);
  else {
    await mkdir(target);
    await mkdir(dirname(path), { recursive: true });
  }
  await symlink(target, path);
  return async () => {
    await unlink(path);
    if (wasThere) await rename(target, path);
  };
}

/** Puts somebody's files into a folder and those below it, down to where a run's files are. */
async function fillWithOthers(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of [
    "notes.txt",
    "mine.parquet",
    "2021.parquet",
    "fills.g7.000001.parquet",
    "journal.ndjson",
  ])
    await writeFile(join(folder, name), `my ${name}`);
  await mkdir(join(folder, "sub"));
  await writeFile(join(folder, "sub", "all.parquet"), "mine");
}

describe.each(commands)("$command", (tried) => {
  const { run, work } = tried;
  // all commands look at all folders in one place: half of the commands for each
  const some = foldersOf(run).filter((_, index) => (index + commands.indexOf(tried)) % 2 === 0);
  it.each(some)("refuses a link in the place of %s, and changes nothing", async (folder) => {
    const mend = await linkOut(join(under.archive.dir, folder));
    await expectRefusal(run, work, folder);
    await mend();
  });

  it("works once the link is a folder again", async () => {
    for (const folder of ["tables/fills", "data"]) {
      const mend = await linkOut(join(under.archive.dir, folder));
      await expect(work()).rejects.toMatchObject({ code: "archive_damaged" });
      await mend();
    }
    await work();
    expect((await verifyAll(under.archive)).flatMap(failedChecks)).toEqual([]);
  });

  it.each(["tables/fills", "data/alpha", "pending", "locks", "jobs"])(
    "refuses a file in the place of %s",
    async (folder) => {
      const path = join(under.archive.dir, folder);
      if (existsSync(path)) await rename(path, join(outside, "target"));
      await writeFile(path, "mine");
      const before = await treeOf(under.archive.dir);
      await expect(work()).rejects.toMatchObject({
        code: "archive_damaged",
        message: "this is a file, not a folder",
        place: { file: path },
      });
      expect(await treeOf(under.archive.dir)).toEqual(before);
    },
  );

  it("leaves alone what is not the archive's, wherever it is", async () => {
    const { dir } = under.archive;
    const mine = [
      "notes.txt",
      "lost+found/x",
      "tables/notes.txt",
      "tables/mine/x.parquet",
      "tables/fills/notes.txt",
      "tables/fills/mine.parquet",
      "tables/fills/alpha/mine.parquet",
      "tables/fills/mine/sub/2021.parquet",
      ...foldersOf(run)
        .filter((folder) => folder.endsWith(run.runId))
        .flatMap((folder) => [`${folder}/notes.txt`, `${folder}/mine.parquet`, `${folder}/sub/all.parquet`]),
      "data/alpha/notes.txt",
      "runs/alpha/notes.txt",
      "runs/notes.txt",
      "jobs/notes.txt",
      "locks/notes.txt",
      "staging/.tables-mine/x",
    ];
    for (const file of mine) {
      await mkdir(dirname(join(dir, file)), { recursive: true });
      await writeFile(join(dir, file), `my ${file}`);
    }
    await writeFile(join(outside, "x.parquet"), "mine");
    await symlink(outside, join(dir, `tables/fills/alpha/${run.runId}/elsewhere`));
    await symlink(outside, join(dir, "elsewhere"));
    const links = [`tables/fills/alpha/${run.runId}/elsewhere`, "elsewhere"];
    const kept = async () => {
      const tree = await treeOf(dir);
      return [...mine, ...links].map((file) => [file, tree.get(file)]);
    };
    const before = { inside: await kept(), outside: await treeOf(outside) };
    expect(before.inside.filter(([, what]) => what === undefined)).toEqual([]);

    await work();
    expect(await kept()).toEqual(before.inside);
    expect(await treeOf(outside)).toEqual(before.outside);
    expect((await verifyAll(under.archive)).flatMap(failedChecks)).toEqual([]);
  });

  it("works in an archive whose root is a link", async () => {
    const { dir } = under.archive;
    const elsewhere = join(outside, "disk");
    await rename(dir, elsewhere);
    await symlink(elsewhere, dir);
    await work();
    await unlink(dir);
    await rename(elsewhere, dir);
    expect((await verifyAll(under.archive)).flatMap(failedChecks)).toEqual([]);
  });
});

/** The folder is a link: through it, a job would find files with names of ours, and others. */
async function expectRefusal(run: typeof worldRun, work: () => Promise<unknown>, folder: string) {
  const { dir, layout } = under.archive;
  const path = join(dir, folder);
  const own = [
    layout.dataDir(run),
    layout.pendingDir(run),
    layout.stagingDir(run),
    layout.quarantineDir(run),
  ];
  for (const below of [layout.tableDir("fills", run), ...own])
    if (`${below}/`.startsWith(`${path}/`)) await fillWithOthers(below);
  const before = { inside: await treeOf(dir), outside: await treeOf(outside) };
  await expect(work()).rejects.toMatchObject({
    code: "archive_damaged",
    message: "this is a symbolic link, not a folder",
    place: { file: path },
    hint: expect.stringContaining("Replace the link with what it points to"),
  });
  expect(await treeOf(outside)).toEqual(before.outside);
  expect(await treeOf(dir)).toEqual(before.inside);
}

describe("a run that is removed", () => {
  it("leaves what is not the archive's, says so, and is gone then", async () => {
    const { dir, layout } = under.archive;
    const note = join(layout.tableDir("fills", worldRun), "notes.txt");
    await writeFile(note, "mine");
    await writeFile(join(layout.dataDir(worldRun), "fills.g1.000009.parquet"), "left by a kill");
    expect(await removeRun(under.archive, worldRun)).toEqual([note]);
    const files = [...(await treeOf(dir))].filter(([, what]) => what !== "folder").map(([path]) => path);
    expect(files.filter((path) => !path.startsWith("locks/"))).toEqual([
      "archive.json",
      "sources.json",
      "tables/fills/alpha/2022-01-01/notes.txt",
    ]);
    await expect(removeRun(under.archive, worldRun)).rejects.toMatchObject({ code: "not_archived" });
  });
});

describe("files that are links", () => {
  it("are not written through: the journal and the lock", async () => {
    const { layout } = under.archive;
    const target = join(outside, "mine");
    await writeFile(target, "mine, without a line end");
    for (const file of [layout.journalFile(worldRun), layout.lockFile(worldRun)]) {
      await rm(file, { force: true });
      await mkdir(dirname(file), { recursive: true });
      await symlink(target, file);
      await expect(archiveInto(under.archive.dir, worldRun, "2", 30)).rejects.toMatchObject({
        code: "archive_damaged",
        message: "this is a symbolic link, not a file",
        place: { file },
      });
      await unlink(file);
    }
    expect(await treeOf(outside)).toEqual(new Map([["mine", expect.any(String)]]));
    await archiveInto(under.archive.dir, worldRun, "2", 30);
  });

  it("are replaced in tables/, where a bucket's link belongs, and go where a removed file's name was", async () => {
    const { layout } = under.archive;
    const target = join(outside, "mine.parquet");
    await writeFile(target, "mine");
    const bucket = join(layout.tableDir("fills", worldRun), "all.parquet");
    await rm(bucket);
    await symlink(target, bucket);
    await symlink(target, join(dirname(bucket), "2021.parquet"));
    const before = await treeOf(outside);
    await archiveInto(under.archive.dir);
    const shown = await treeOf(dirname(bucket));
    expect([...shown.keys()]).toEqual(["all.parquet"]);
    expect(shown.get("all.parquet")).not.toContain("link");
    expect(await treeOf(outside)).toEqual(before);
  });
});

describe("folders in the way", () => {
  it("of a bucket's link are refused and kept, also where the links are swapped", async () => {
    const { layout } = under.archive;
    const bucket = join(layout.tableDir("fills", worldRun), "all.parquet");
    await rm(bucket);
    await mkdir(bucket);
    await writeFile(join(bucket, "part-0.parquet"), "mine");
    await startWidening(under.archive, { fills: { price: null } }, step);
    await rebuild(null);
    const refused = {
      code: "archive_damaged",
      message: "this is a folder, not a file",
      place: { file: bucket },
    };
    const before = await treeOf(layout.tablesRoot);
    await expect(finishWidening(under.archive, step, signal)).rejects.toMatchObject(refused);
    expect(await treeOf(layout.tablesRoot)).toEqual(before);
    await rename(bucket, join(outside, "mine"));
    expect(await finishWidening(under.archive, step, signal)).toEqual([]);
    await rm(bucket);
    await rename(join(outside, "mine"), bucket);
    await expect(archiveInto(under.archive.dir)).rejects.toMatchObject(refused);
    expect(await treeOf(layout.tablesRoot)).toEqual(before);
  });
});

describe("an archive that went away", () => {
  it("is not made anew, in part, by whoever wants a lock in it", async () => {
    await rm(under.archive.dir, { recursive: true });
    await expect(lockRun(under.archive.layout, worldRun)).rejects.toMatchObject({
      code: "archive_damaged",
      message: expect.stringContaining("cannot be made"),
    });
    expect(existsSync(under.archive.dir)).toBe(false);
  });
});

describe("what killed jobs left", () => {
  it("goes with the next job, but for what is not the archive's beside it", async () => {
    const { dir, layout } = under.archive;
    const left = [
      join(layout.stagingDir(worldRun), "duckdb_temp_storage_DEFAULT-0.tmp"),
      join(layout.stagingDir(worldRun), "fills.g2.000001.ndjson.zst"),
      join(layout.pendingDir(worldRun), "fills.g2.000002.parquet"),
      join(layout.dataDir(worldRun), "summary.g2.000003.json"),
      join(layout.quarantineDir(worldRun), "fills.g2.000004.quarantine.ndjson"),
      join(layout.tableDir("fills", worldRun), ".4711.part"),
      join(layout.tableDir("fills", worldRun), "2021-01.parquet"),
      join(dirname(layout.manifestFile(worldRun)), ".2022-01-01.json.4711-1.part"),
    ];
    const mine = join(layout.pendingDir(worldRun), "notes.txt");
    const clean = await treeOf(dir);
    for (const file of [...left, mine]) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, "x");
    }
    await archiveInto(dir);
    for (const file of left) expect(existsSync(file), file).toBe(false);
    expect(existsSync(mine)).toBe(true);
    await rm(mine);
    await archiveInto(dir);
    const now = await treeOf(dir);
    for (const [path, what] of now) if (what === "folder" && !clean.has(path)) now.delete(path);
    expect(now).toEqual(clean);
  });
});

describe("a change of types that is killed while the links are swapped", () => {
  it.each(["tables-removed", "tables-replaced"])(
    "at %s: the next finds and keeps users' files",
    async (at) => {
      const { dir, layout } = under.archive;
      const mine = ["notes.txt", "alpha/mine.parquet", "alpha/2022-01-01/notes.txt", "mine/sub/2021.parquet"];
      for (const file of mine) {
        const path = join(layout.tablesDir("fills"), file);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, `my ${file}`);
      }
      const before = await treeOf(layout.tablesDir("fills"));
      await startWidening(under.archive, { fills: { price: null } }, step);
      await rebuild(null);
      const killed = join(under.folder, `killed-${at}`);
      // what a kill at this moment leaves: the job itself goes on and tidies up
      const keep = (name: string) => {
        if (name === at) cpSync(dir, killed, { recursive: true, verbatimSymlinks: true });
      };
      await finishWidening(under.archive, keep, signal);
      expect(existsSync(join(killed, "staging", ".tables-fills", "former", "notes.txt"))).toBe(true);

      const archive = await openArchive(killed);
      expect(archive.formerTypes("fills")).toBeDefined();
      expect(await finishWidening(archive, step, signal)).toEqual([]);
      const after = await treeOf(archive.layout.tablesDir("fills"));
      expect([...after.keys()]).toEqual([...before.keys()]);
      for (const file of mine) expect(after.get(file)).toBe(before.get(file));
      expect(existsSync(archive.layout.tablesAside("fills"))).toBe(false);
      expect((await verifyAll(archive)).flatMap(failedChecks)).toEqual([]);
      expect(after).toEqual(await treeOf(layout.tablesDir("fills")));
    },
  );

  it("is not undone over a file that was put there since: both are kept, and the user is told", async () => {
    const { layout } = under.archive;
    await startWidening(under.archive, { fills: { price: null } }, step);
    await rebuild(null);
    const former = join(layout.tablesAside("fills"), "former", "notes.txt");
    const now = join(layout.tablesDir("fills"), "notes.txt");
    await mkdir(dirname(former), { recursive: true });
    await writeFile(former, "the former");
    await writeFile(now, "the later");
    const before = await treeOf(layout.tablesDir("fills"));
    await expect(finishWidening(under.archive, step, signal)).rejects.toMatchObject({
      code: "archive_damaged",
      place: { file: former },
      hint: expect.stringContaining("Move one of the two out of the archive"),
    });
    expect(await treeOf(layout.tablesDir("fills"))).toEqual(before);
    await unlink(former);
    expect(await finishWidening(under.archive, step, signal)).toEqual([]);
    expect((await treeOf(layout.tablesDir("fills"))).get("notes.txt")).toBe(before.get("notes.txt"));
  });
});
