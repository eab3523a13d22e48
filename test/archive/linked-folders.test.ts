// @module-tag slow
import { mkdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create(["fills"]);
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

/** Moves a folder of the archive to another place, with all its files, and puts a link in its place. */
async function linkOut(folder: string): Promise<void> {
  const outside = join(under.folder, "outside");
  await rm(outside, { recursive: true, force: true });
  await mkdir(outside);
  const path = join(under.archive.dir, folder);
  await rename(path, join(outside, "target"));
  await symlink(join(outside, "target"), path);
}

const run = `${worldRun.instanceId}/${worldRun.runId}`;
const reading = [
  { name: "runs", args: ["runs"], reads: ["runs"] },
  { name: "query", args: ["query", "SELECT count(*) FROM fills"], reads: ["runs", "data"] },
  { name: "files", args: ["export", "--list", "fills", "--run", run], reads: ["runs", "data"] },
  {
    name: "export",
    args: ["export", "fills", "--format", "csv", "--out", "-"],
    reads: ["runs", "data"],
  },
];

describe.each(reading)("$name", ({ args, reads }) => {
  it.each(["runs", "runs/alpha", "data", "data/alpha", "data/alpha/2022-01-01"])(
    "reads nothing through a link in the place of %s",
    async (folder) => {
      await linkOut(folder);
      const { status, stdout, stderr } = await runInside([...args, "--archive", under.archive.dir]);
      if (!reads.includes(folder.split("/")[0]!)) {
        expect(status).toBe(0);
        return;
      }
      expect({ status, stdout }).toEqual({ status: 5, stdout: "" });
      expect(stderr).toContain(join(under.archive.dir, folder));
      expect(stderr).toContain("this is a symbolic link, not a folder");
      expect(stderr).toContain("mount --bind");
    },
  );
});

it.each(["runs", "runs/alpha"])(
  "a link in the place of %s to an empty folder is not an archive with fewer runs",
  async (folder) => {
    await linkOut(folder);
    await rm(join(under.folder, "outside/target"), { recursive: true });
    await mkdir(join(under.folder, "outside/target"));
    for (const { args } of reading.filter(({ name }) => name !== "files")) {
      const { status } = await runInside([...args, "--archive", under.archive.dir]);
      expect(status).toBe(5);
    }
    await using source = openArchiveSource(under.archive);
    await expect(source.runs("alpha")).rejects.toMatchObject({ code: "archive_damaged" });
  },
);

describe("an archive as a source", () => {
  const firstOf = async (source: HistorySource) => {
    for await (const chunk of source.rows({ ...worldRun, table: "fills" })) return chunk.byteLength;
  };

  it.each(["runs", "runs/alpha", "data", "data/alpha/2022-01-01"])(
    "reads nothing through a link in the place of %s",
    async (folder) => {
      await linkOut(folder);
      await using source = openArchiveSource(under.archive);
      await expect(firstOf(source)).rejects.toMatchObject({ code: "archive_damaged" });
    },
  );

  it("reads no files through a link that came since", async () => {
    await using source = openArchiveSource(under.archive, { keptBytes: 0 });
    expect(await firstOf(source)).toBeGreaterThan(0);
    await linkOut("data/alpha");
    await expect(firstOf(source)).rejects.toMatchObject({ code: "archive_damaged" });
  });

  it("reads an archive whose root is a link", async () => {
    const elsewhere = join(under.folder, "elsewhere");
    await rename(under.archive.dir, elsewhere);
    await symlink(elsewhere, under.archive.dir);
    try {
      const { status, stdout } = await runInside([
        "export",
        "--list",
        "fills",
        "--archive",
        under.archive.dir,
      ]);
      expect({ status, isListed: stdout !== "" }).toEqual({ status: 0, isListed: true });
    } finally {
      await rm(under.archive.dir);
      await rename(elsewhere, under.archive.dir);
    }
  });
});
