// @module-tag slow
import { chmod, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { verifyPlaces } from "../../src/archive/verify/verify-places.ts";
import {
  ArchiveUnderTest,
  archiveWorld,
  failedChecks,
  smallWorld,
  verifyAll,
  worldRun,
} from "../fixtures/archive/archived-world.ts";
import { hours, repriced, TableWorld, run as tableRun, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create(["fills"]);
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

async function write(...files: string[]): Promise<void> {
  for (const file of files) {
    const path = join(under.archive.dir, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "mine");
  }
}

/** Moves something out of the archive, and puts a link in its place. */
async function linkOut(path: string): Promise<void> {
  const target = join(under.folder, "outside");
  await rm(target, { recursive: true, force: true });
  await rename(join(under.archive.dir, path), target).catch(() => mkdir(target));
  await symlink(target, join(under.archive.dir, path));
}

/** What was found, but for what is as it has to be. */
async function found(...runs: (typeof worldRun)[]) {
  const { checks, exit } = await verifyPlaces(under.archive, runs.length === 0 ? undefined : runs);
  const told = checks.filter(({ level }) => level !== "ok");
  return { exit, told: told.map(({ check, level, files }) => ({ check, level, files })) };
}

const nothing = { exit: 0, told: [] };

describe("the folders of an archive", () => {
  it("are in order where nobody but runvault was at work", async () => {
    expect(await verifyPlaces(under.archive)).toEqual({
      checks: [{ check: "places", level: "ok", ok: true, files: [], detail: expect.any(String) }],
      damaged: false,
      unproven: false,
      exit: 0,
    });
  });

  it.each(["segment-written", "parquet-renamed", "commit-moved-one", "manifest-written", "manifest-renamed"])(
    "are in order while a job is at %s, and once it was killed there",
    async (step) => {
      await using table = await TableWorld.create();
      const source = new ArraySource(tableRun, world({ fills: hours(30), bars: hours(3) }));
      const looks: ReturnType<typeof verifyPlaces>[] = [];
      await table.archiveRun(source, {
        step: (name) => {
          if (name === step) looks.push(verifyPlaces(table.archive));
        },
      });
      source.storageVersion = "2";
      source.tables.set("fills", repriced(source.tables.get("fills")!));
      await table.archiveUntil(source, step, 1);
      looks.push(verifyPlaces(table.archive));
      expect(looks.length).toBeGreaterThan(1);
      for (const report of await Promise.all(looks))
        expect(report.checks.map(({ level }) => level)).toEqual(["ok"]);
    },
  );

  it("are in order with rows set aside, and while types are changed", async () => {
    const rows = smallWorld();
    rows.set(
      "bars",
      rows.get("bars")!.map((row, i) => (i === 4 ? { ...row, line: `${row.line}}` } : row)),
    );
    const more = await archiveWorld(join(under.folder, "quarantined"), new ArraySource(worldRun, rows));
    expect(more.manifest.tables.bars?.state).toBe("QUARANTINED");
    expect((await verifyPlaces(more.archive)).checks.map(({ level }) => level)).toEqual(["ok"]);
    await write("staging/.tables-fills/former/alpha/2022-01-02/all.parquet");
    expect(await found()).toEqual(nothing);
    // no shape has a folder of this name, whatever objects have
    await write("staging/constructor/x", "toString/x");
    expect((await found()).told[0]!.files).toEqual(["staging/constructor/x", "toString"]);
  });

  it("are in order with ids of all kinds of characters", async () => {
    for (const [instanceId, runId] of [
      ["ü".repeat(200), "r".repeat(300)],
      [".hidden", "a/b c%"],
    ] as const) {
      const run = { instanceId, runId };
      await archiveWorld(under.archive.dir, new ArraySource(run, smallWorld(4, run)), { tables: ["fills"] });
    }
    expect(await found()).toEqual(nothing);
  });
});

describe("a link in an archive", () => {
  it.each([
    "tables",
    "tables/fills",
    "tables/fills/alpha",
    "tables/fills/alpha/2022-01-01",
    "tables/fills/alpha/2022-01-01/all.parquet",
    "data",
    "data/alpha",
    "data/alpha/2022-01-01",
    "runs",
    "runs/alpha",
    "runs/alpha/2022-01-01.json",
    "locks",
    "locks/alpha",
    "locks/alpha/2022-01-01.duckdb",
    "archive.json",
    // no run has these names now, but jobs would refuse one that had
    "data/beta",
    "tables/fills/alpha/mine.parquet",
  ])("in the place of %s is damage, with the remedy", async (path) => {
    await linkOut(path);
    const expected = { exit: 5, told: [{ check: "places", level: "damaged", files: [path] }] };
    expect(await found()).toEqual(expected);
    const { checks } = await verifyPlaces(under.archive);
    expect(checks[0]!.detail).toMatch(
      /^this is a symbolic link, not a f\w+\. Replace the link with what it points to/,
    );
    const isOnThePaths = !["archive.json", "data/beta", "tables/fills/alpha/mine.parquet"].includes(path);
    expect(await found(worldRun)).toEqual(isOnThePaths ? expected : nothing);
  });

  it("of a committed segment is damage, though its bytes are those committed", async () => {
    const { file } = under.manifest.tables.fills!.proven!.segments[0]!;
    await linkOut(`data/alpha/2022-01-01/${file}`);
    expect(await found()).toMatchObject({ exit: 5 });
    // jobs and readers refuse it, so the run has not got it
    expect((await verifyAll(under.archive)).map(failedChecks)).toEqual([["fills files"]]);
  });

  it("where nothing of the archive belongs is a foreign entry, and not followed", async () => {
    const elsewhere = join(under.folder, "elsewhere");
    await mkdir(elsewhere, { recursive: true });
    await writeFile(join(elsewhere, "x.parquet"), "mine");
    for (const path of ["latest", "tables/mine", "data/alpha/2022-01-01/more"])
      await symlink(elsewhere, join(under.archive.dir, path));
    expect(await found()).toEqual({
      exit: 0,
      told: [
        {
          check: "foreign",
          level: "notice",
          files: ["data/alpha/2022-01-01/more", "latest", "tables/mine"],
        },
      ],
    });
  });
});

describe("what is not the archive's", () => {
  it("is told, and is no failure", async () => {
    const files = [
      ".DS_Store",
      "data/alpha/2022-01-01/.nfs0001",
      "data/notes.txt",
      "jobs/rebuild-mine.json",
      "locks/notes",
      "runs/.DS_Store",
      "runs/alpha/notes.txt",
      "staging/alpha/2022-01-01/x",
      "tables/fills/alpha/2022-01-01/notes.txt",
      "tables/fills/notes.txt",
      "tables/notes.parquet",
    ];
    await write(...files, "lost+found/x", "pending/alpha/2022-01-01/sub/x", "tables/mine/x.parquet");
    const listed = [...files, "lost+found", "pending/alpha/2022-01-01/sub", "tables/mine"];
    const { exit, told } = await found();
    expect({ exit, told: told.length }).toEqual({ exit: 0, told: 1 });
    expect(told[0]).toMatchObject({ check: "foreign", level: "notice" });
    expect([...told[0]!.files].sort()).toEqual(listed.sort());
    const own = (await found(worldRun)).told[0]!.files;
    expect([...own].sort()).toEqual(listed.filter((file) => file.includes("2022-01-01")));
    expect((await verifyAll(under.archive)).map(failedChecks)).toEqual([[]]);
  });

  it("fails where it is Parquet among a table's, which whoever globs the table reads", async () => {
    const files = [
      "tables/fills/alpha/2022-01-01/.hidden.parquet",
      "tables/fills/alpha/2022-01-01/mine.parquet",
      "tables/fills/alpha/2022-01-01/sub/deep/all.parquet",
      "tables/fills/alpha/mine.parquet",
      "tables/fills/mine.parquet",
    ];
    await write(...files, "tables/fills/alpha/2022-01-01/sub/notes.txt");
    expect(await found()).toEqual({ exit: 4, told: [{ check: "foreign", level: "unproven", files }] });
    expect(await found({ ...worldRun, runId: "another" })).toEqual(nothing);
  });

  it("is damage where it takes the place of a folder or file of the archive", async () => {
    await rename(join(under.archive.dir, "tables/fills/alpha"), join(under.folder, "aside"));
    await write("tables/fills/alpha", "quarantine");
    const bucket = "data/alpha/2022-01-01/fills.g1.000042.parquet";
    await mkdir(join(under.archive.dir, bucket));
    const { exit, told } = await found();
    expect(exit).toBe(5);
    expect(told.map(({ level, files }) => `${level} ${files}`).sort()).toEqual([
      `damaged ${bucket}`,
      "damaged quarantine",
      "damaged tables/fills/alpha",
    ]);
    await rm(join(under.folder, "aside"), { recursive: true });
  });

  it("may be closed to this user", async () => {
    await write("tables/fills/closed/run/sub/x.parquet");
    const closed = join(under.archive.dir, "tables/fills/closed/run/sub");
    await chmod(closed, 0o000);
    // the superuser looks into it all the same
    const level = process.getuid?.() === 0 ? "unproven" : "notice";
    expect((await found()).told).toEqual([{ check: "foreign", level, files: [expect.any(String)] }]);
    await chmod(closed, 0o755);
  });

  it("does not keep the archive's runs from being listed", async () => {
    await write("runs/.DS_Store", "runs/notes.txt");
    expect(await under.archive.manifests()).toEqual([under.manifest]);
  });
});
