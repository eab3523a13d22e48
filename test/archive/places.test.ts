import { access, copyFile, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findArchive, openArchive } from "../../src/archive/archive.ts";
import { lockRun } from "../../src/archive/lock.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { ArchiveUnderTest, archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

describe("what an archive's own files may say", () => {
  let under: ArchiveUnderTest;
  beforeAll(async () => {
    under = await ArchiveUnderTest.create();
  });
  afterAll(() => under[Symbol.asyncDispose]());
  beforeEach(() => under.renew());

  it("no bucket leads out of the archive", async () => {
    for (const bucket of ["../../escaped", "all/../x", "", "2022-1", ".."]) {
      await under.editManifest((manifest) => {
        manifest.tables.fills!.proven!.parquet[0]!.bucket = bucket;
      });
      await expect(under.archive.manifest(worldRun)).rejects.toMatchObject({
        code: "archive_damaged",
        message: expect.stringContaining("bucket"),
      });
    }
  });

  it("a manifest counts in its own place only", async () => {
    const file = under.archive.layout.manifestFile(worldRun);
    const copy = file.replace(/\.json$/, " (copy).json");
    await copyFile(file, copy);
    await expect(under.archive.manifests()).rejects.toMatchObject({
      code: "archive_damaged",
      place: { file: copy },
      hint: expect.stringContaining("count its run twice"),
    });
  });

  it("column types are DECIMALs that there are, and what is missing is as usual", async () => {
    const file = under.archive.layout.archiveFile;
    const archive = JSON.parse(await readFile(file, "utf8"));
    archive.exactTypes.fills.price = "DECIMAL(99,9)";
    await writeFile(file, JSON.stringify(archive));
    await expect(openArchive(under.archive.dir)).rejects.toMatchObject({ code: "archive_damaged" });
    delete archive.exactTypes.fills.price;
    delete archive.exactTypes.bars;
    await writeFile(file, JSON.stringify(archive));
    const opened = await openArchive(under.archive.dir);
    const usual = (table: "fills" | "bars", column: string) =>
      tableNamed(table).columns.find(({ name }) => name === column)!.exactType;
    expect(opened.exactTypes("fills").price).toBe(usual("fills", "price"));
    expect(opened.exactTypes("bars").volume).toBe(usual("bars", "volume"));
  });

  it("of two jobs that make one archive, both use the first one's", async () => {
    const dir = join(under.folder, "made-twice");
    const made = await Promise.all([
      openArchive(dir, { create: true, exactTypes: { fills: { price: "DECIMAL(20,10)" } } }),
      openArchive(dir, { create: true }),
    ]);
    const { id } = (await findArchive(dir))!;
    expect(made.map((archive) => archive.id)).toEqual([id, id]);
    expect(made[0]!.exactTypes("fills")).toEqual(made[1]!.exactTypes("fills"));
    expect(await readdir(dir)).toEqual(["archive.json"]);
  });

  it("ids of hundreds of bytes are archived", async () => {
    const long = { instanceId: "ü".repeat(200), runId: "r".repeat(300) };
    await using lock = await lockRun(under.archive.layout, long);
    expect(lock).toBeDefined();
    await expect(lockRun(under.archive.layout, long)).rejects.toMatchObject({ code: "locked" });
  });
});

describe("files that go away", () => {
  it("before the commit: nothing is committed, and the next call fetches them again", async () => {
    await using table = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(30) }));
    const pending = table.archive.layout.pendingDir(run);
    // the run's documents are the last to be asked for
    const document = source.document.bind(source);
    source.document = async (...asked) => {
      if (asked[1] === "resources")
        for (const file of await readdir(pending)) if (file.endsWith(".zst")) await rm(join(pending, file));
      return await document(...asked);
    };
    const failed = table.archiveRun(source);
    await expect(failed).rejects.toMatchObject({
      code: "archive_damaged",
      hint: expect.stringContaining("nothing was committed"),
    });
    expect(await table.archive.manifest(run)).toBe(null);
    source.document = document;
    const { manifest } = await table.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect(await parquetLines(table.archive, run, "fills")).toHaveLength(30);
  });

  it.each(["missing", "flipped"])(
    "a committed segment that is %s when its bucket grows is fetched again, flipped bytes once they were found",
    async (how) => {
      await using table = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(20) }), { final: false });
      await table.archiveRun(source);
      const { manifest } = { manifest: (await table.archive.manifest(run))! };
      const file = join(table.archive.layout.dataDir(run), manifest.tables.fills!.proven!.segments[0]!.file);
      if (how === "missing") await rm(file);
      else {
        const bytes = await readFile(file);
        bytes[bytes.length >> 1]! ^= 1;
        await writeFile(file, bytes);
      }
      source.tables = world({ fills: hours(40) });
      if (how === "flipped") {
        await expect(table.archiveRun(source)).rejects.toMatchObject({
          code: "archive_damaged",
          place: { file },
        });
        expect((await table.archive.manifest(run))!.generation).toBe(manifest.generation);
      }
      const { horizon } = (await table.archiveRun(source)).manifest;
      await table.expectRows(
        "fills",
        source.tables.get("fills")!.filter(({ ts }) => ts < BigInt(horizon!)),
      );
    },
  );
});

describe("rows set aside from one unsorted answer", () => {
  it("are kept for each of its parts, and a cleaned segment counts only together with them", async () => {
    await using table = await TableWorld.create();
    const rows = rowsAt(
      run,
      "fills",
      hours(24).map((n) => 1_640_995_200_000_000_000n + BigInt(n)),
    );
    // two rows change places, so the answer is one unsorted window of several segments
    const sent = [rows[0]!, rows[2]!, rows[1]!, ...rows.slice(3)].map((row, i) =>
      i === 5 || i === 20 ? { ...row, line: row.line.replace('"quantity":"', '"quantity":"x') } : row,
    );
    const source = new ArraySource(run, new Map([["fills", sent]]));
    const { manifest } = await table.archiveRun(source, { settings: { segmentBytes: 3000, sliceRows: 100 } });
    const { state, quarantine, segments, certificate } = latestView(manifest.tables.fills)!;
    expect(segments.length).toBeGreaterThan(1);
    expect({ state, aside: quarantine.map((file) => file.rows) }).toEqual({
      state: "QUARANTINED",
      aside: [1, 1],
    });
    expect(new Set(quarantine.map(({ segment }) => segment)).size).toBe(2);
    expect(certificate).toMatchObject({ rows: 22, quarantined: 2, proof: "counted" });
    expect(await segmentLines(table.archive, run, "fills")).toHaveLength(22);
  });
});

describe("an archive on a disk without hard links", () => {
  it("does not copy its Parquet again while nothing changed", async () => {
    await using under = await ArchiveUnderTest.create(["fills"]);
    await under.renew();
    const { layout } = under.archive;
    const [name] = await readdir(layout.tableDir("fills", worldRun));
    const shown = join(layout.tableDir("fills", worldRun), name!);
    const aside = `${shown}.aside`;
    await copyFile(shown, aside);
    await rm(shown);
    await copyFile(aside, shown);
    await rm(aside);
    const before = await stat(shown);
    await archiveWorld(under.archive.dir, new ArraySource(worldRun, smallWorld()), { tables: ["fills"] });
    expect((await stat(shown)).ino).toBe(before.ino);
    await access(shown);
  });
});
