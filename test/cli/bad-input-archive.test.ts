// @module-tag slow
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { lockRun } from "../../src/archive/lock.ts";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { expectRefusal } from "../fixtures/command/refusal.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const named = "alpha/2022-01-01";

let folder: string;
let dir: string;
let pristine: string;
let archive: Archive;
let manifest: Manifest;
let served: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-bad-archive-"));
  pristine = join(folder, "pristine");
  dir = join(folder, "archive");
  const source = new ArraySource(worldRun, smallWorld());
  const tables = ["fills", "orders"] as const;
  ({ manifest } = await archiveWorld(pristine, source, { tables }));
  served = await serve({ source, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await served.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await rm(dir, { recursive: true, force: true });
  await cp(pristine, dir, { recursive: true });
  archive = await openArchive(dir);
});

const archiveInto = (to: string) => ["archive", named, "--gateway", served.url, "--archive", to];

describe("an archive folder that is something else", () => {
  it("exits with 2 and leaves a folder with other files as it is", async () => {
    const other = join(folder, "photos");
    await mkdir(other, { recursive: true });
    await writeFile(join(other, "cat.jpg"), "a cat");
    const refusal = { status: 2, code: "not_an_archive", says: [other, "not an archive"] } as const;
    await expectRefusal(archiveInto(other), refusal);
    await expectRefusal(["query", "SELECT 1", "--archive", other], refusal);
    expect(await readFile(join(other, "cat.jpg"), "utf8")).toBe("a cat");
  });

  it("exits with 2 for a plain file, and for a folder that is not there", async () => {
    const file = join(folder, "file");
    await writeFile(file, "text");
    await expectRefusal(archiveInto(file), {
      status: 2,
      code: "not_an_archive",
      says: [file, "not a folder"],
    });
    const missing = join(folder, "missing");
    await expectRefusal(["verify", "--archive", missing], {
      status: 2,
      code: "not_an_archive",
      says: [missing],
    });
  });

  it("exits with 2 for an archive of a later format, and with 5 for an archive.json that is none", async () => {
    const file = join(dir, "archive.json");
    await writeFile(file, '{"format": 2}');
    await expectRefusal(archiveInto(dir), {
      status: 2,
      code: "not_an_archive",
      says: ["format 2", "newer runvault"],
    });
    await writeFile(file, '{"format": 1');
    await expectRefusal(archiveInto(dir), { status: 5, code: "archive_damaged", says: [file] });
  });
});

describe("a flipped byte", () => {
  /** Flips the lowest bit of the byte at a share of the file. */
  async function flip(file: string, share = 0.5): Promise<void> {
    const bytes = await readFile(file);
    const at = Math.min(bytes.length - 1, Math.floor(bytes.length * share));
    bytes[at]! ^= 1;
    await writeFile(file, bytes);
  }

  const damaged: [what: string, file: () => string][] = [
    ["manifest", () => archive.layout.manifestFile(worldRun)],
    [
      "segment",
      () => join(archive.layout.dataDir(worldRun), manifest.tables.fills!.proven!.segments[0]!.file),
    ],
    [
      "Parquet",
      () => join(archive.layout.dataDir(worldRun), manifest.tables.orders!.proven!.parquet[0]!.file),
    ],
    ["document", () => join(archive.layout.dataDir(worldRun), manifest.documents.summary!.file)],
  ];
  it.each(damaged)("in a %s makes verify exit with 5 and name the file", async (_, fileOf) => {
    const file = fileOf();
    for (const share of [0.01, 0.5, 0.99]) {
      const before = await readFile(file);
      await flip(file, share);
      const { status, stdout, stderr } = await runInside(["verify", "--archive", dir, "-q"]);
      expect({ share, status, stderr }).toEqual({ share, status: 5, stderr: "" });
      expect(stdout).toContain("DAMAGED");
      expect(stdout).toContain(
        file
          .slice(dir.length + 1)
          .split("/")
          .at(-1),
      );
      await writeFile(file, before);
    }
    const json = await flip(file).then(() => runInside(["verify", "--archive", dir, "--json"]));
    expect(json.status).toBe(5);
    expect(JSON.parse(json.stdout)).toMatchObject({ exit: 5, runs: [{ damaged: true }] });
  });

  it("in a manifest makes query, files, runs and archive exit with 5", async () => {
    const file = archive.layout.manifestFile(worldRun);
    await flip(file);
    const refusal = { status: 5, code: "archive_damaged", says: [file] } as const;
    const here = ["--archive", dir];
    await expectRefusal(["query", "SELECT count(*) FROM fills", ...here], refusal);
    await expectRefusal(["export", "--list", "fills", ...here], refusal);
    await expectRefusal(archiveInto(dir), refusal);
  });
});

describe("two jobs", () => {
  it("on one run: the second exits with 6, names the first's process, and changes nothing", async () => {
    await using _held = await lockRun(archive.layout, worldRun);
    const before = await readFile(archive.layout.manifestFile(worldRun));
    await expectRefusal(archiveInto(dir), {
      status: 6,
      code: "locked",
      says: [`pid ${process.pid}`, "Wait for it to end"],
    });
    expect(await readFile(archive.layout.manifestFile(worldRun))).toEqual(before);
  });
});

describe("two archives", () => {
  it("that hold different rows make diff exit with 4 and show the first difference", async () => {
    const world = smallWorld();
    const [first, ...rest] = world.get("fills")!;
    world.set("fills", [{ ...first!, line: first!.line.replace('"side":"', '"side":"x') }, ...rest]);
    const other = join(folder, "other");
    await archiveWorld(other, new ArraySource(worldRun, world), { tables: ["fills", "orders"] });
    expect((await runInside(["maintain", "diff", dir, pristine])).status).toBe(0);
    const { status, stdout } = await runInside(["maintain", "diff", dir, other]);
    expect(status).toBe(4);
    expect(stdout).toMatch(/fills: different.*line 1\n.*"side":"side-0".*"side":"xside-0"/s);
    expect(stdout).toContain("orders: equal, 25 rows");
    const json = await runInside(["maintain", "diff", dir, other, "--json"]);
    expect([json.status, JSON.parse(json.stdout).equal]).toEqual([4, false]);
  });
});
