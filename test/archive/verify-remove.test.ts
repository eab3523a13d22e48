// @module-tag slow
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { lockRun } from "../../src/archive/lock.ts";
import { removeRun } from "../../src/archive/upkeep/remove.ts";
import {
  ArchiveUnderTest,
  archiveWorld,
  failedChecks,
  smallWorld,
  verifyAll,
  worldRun,
} from "../fixtures/archive/archived-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

/** Files of the archive but for its own description and the locks. */
async function filesLeft(): Promise<string[]> {
  const entries = await readdir(under.archive.dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(under.archive.dir.length + 1))
    .filter((name) => !["archive.json", "sources.json"].includes(name) && !name.startsWith("locks"));
}

class Killed extends Error {}

describe("removing a run", () => {
  it("leaves nothing of it, and all of the other runs", async () => {
    const other = { ...worldRun, runId: "2022-01-02" };
    await archiveWorld(under.archive.dir, new ArraySource(other, smallWorld(4, other)));
    const aside = under.archive.layout.quarantineDir(worldRun);
    await mkdir(aside, { recursive: true });
    await writeFile(join(aside, "bars.g1.000007.quarantine.ndjson"), "x");
    const pending = under.archive.layout.pendingDir(worldRun);
    await mkdir(pending, { recursive: true });
    await writeFile(join(pending, "journal.ndjson"), "x");
    await removeRun(under.archive, worldRun);
    expect(await under.archive.manifest(worldRun)).toBeNull();
    expect((await filesLeft()).filter((name) => name.includes("2022-01-01"))).toEqual([]);
    expect((await verifyAll(under.archive)).map(failedChecks)).toEqual([[]]);
    await removeRun(under.archive, other);
    expect(await filesLeft()).toEqual([]);
    expect(await readdir(join(under.archive.dir, "data"))).toEqual([]);
  });

  it("that was killed in the middle leaves folders that verify reports, without calling them damage", async () => {
    const killed = new Killed();
    const step = (name: string) => {
      if (name === "remove-manifest") throw killed;
    };
    await expect(removeRun(under.archive, worldRun, { step })).rejects.toMatchObject({ cause: killed });
    const [report, ...others] = await verifyAll(under.archive);
    expect(others).toEqual([]);
    expect(report).toMatchObject({ run: worldRun, generation: null, exit: 0 });
    expect(report!.checks.length).toBeGreaterThan(0);
    for (const { table, check, level, files } of report!.checks) {
      expect({ check, level }).toEqual({ check: "links", level: "notice" });
      expect(files).toEqual([`tables/${table}/${worldRun.instanceId}/${worldRun.runId}`]);
    }
    await removeRun(under.archive, worldRun);
    expect(await verifyAll(under.archive)).toEqual([]);
  });

  it("stopped at any of its steps leaves no run, only files that a second call removes", async () => {
    let steps = 0;
    await removeRun(under.archive, worldRun, { step: () => steps++ });
    expect(steps).toBeGreaterThan(5);
    for (let stop = 1; stop <= steps; stop++) {
      await under.renew();
      let at = 0;
      const step = () => {
        if (++at === stop) throw new Killed();
      };
      await expect(removeRun(under.archive, worldRun, { step })).rejects.toMatchObject({
        cause: expect.any(Killed),
      });
      expect(await under.archive.manifests()).toEqual([]);
      const left = await filesLeft();
      if (left.length > 0) await removeRun(under.archive, worldRun);
      expect(await filesLeft()).toEqual([]);
    }
  });

  it("throws not_archived where there is nothing of it, and leaves nothing behind for asking", async () => {
    const before = await readdir(under.archive.dir, { recursive: true });
    const missing = { instanceId: "alpha", runId: "2022-13-01" };
    await expect(removeRun(under.archive, missing)).rejects.toMatchObject({ code: "not_archived" });
    expect(await readdir(under.archive.dir, { recursive: true })).toEqual(before);
    await removeRun(under.archive, worldRun);
    await expect(removeRun(under.archive, worldRun)).rejects.toMatchObject({ code: "not_archived" });
  });

  it("waits for no job: it throws locked while one works on the run", async () => {
    {
      await using _job = await lockRun(under.archive.layout, worldRun);
      await expect(removeRun(under.archive, worldRun)).rejects.toMatchObject({ code: "locked" });
      expect(await under.archive.manifest(worldRun)).not.toBeNull();
    }
    await removeRun(under.archive, worldRun);
  });

  it("works for a manifest that is damaged, in its text or in its ids", async () => {
    const file = under.archive.layout.manifestFile(worldRun);
    const text = await readFile(file, "utf8");
    for (const broken of [text.slice(0, 50), "null", text.replaceAll("2022-01-01", "2022-01-03")]) {
      await under.renew();
      await writeFile(file, broken);
      await removeRun(under.archive, worldRun);
      expect(await filesLeft()).toEqual([]);
    }
  });

  it("can be archived again afterwards, from the first generation on", async () => {
    await removeRun(under.archive, worldRun);
    const { manifest } = await archiveWorld(under.archive.dir, new ArraySource(worldRun, smallWorld()));
    expect(manifest.generation).toBe(1);
    expect((await verifyAll(under.archive)).map(failedChecks)).toEqual([[]]);
  });

  it("keeps the folder of an instance that holds other runs", async () => {
    const other = { ...worldRun, runId: "2022-01-02" };
    await archiveWorld(under.archive.dir, new ArraySource(other, smallWorld(4, other)), {
      tables: ["fills"],
    });
    await rm(under.archive.layout.dataDir(worldRun), { recursive: true });
    await removeRun(under.archive, worldRun);
    expect(await readdir(dirname(under.archive.layout.dataDir(other)))).toEqual(["2022-01-02"]);
  });
});
