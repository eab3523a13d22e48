// @module-tag slow
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lockRun } from "../../src/archive/lock.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { RebuildWorld, second } from "../fixtures/archive/rebuild-world.ts";
import { at, hours, run, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

let under: RebuildWorld;
beforeEach(async () => {
  under = await RebuildWorld.create();
});
afterEach(() => under[Symbol.asyncDispose]());

describe("a rebuilt run", () => {
  test("has the same rows, certificates and segments in a new generation, its Parquet in new files", async () => {
    const tables = world({ fills: hours(40), bars: hours(30), metrics: hours(5), events: hours(9) });
    await under.place.archiveRun(new ArraySource(run, tables), { settings: { fingerprint: true } });
    const before = (await under.archive.manifest(run))!;
    const { manifest, buckets, resumedBuckets, rows } = await under.rebuild(run, before.generation);
    expect({ buckets, resumedBuckets, rows }).toEqual({ buckets: 4, resumedBuckets: 0, rows: 84 });
    expect(manifest.generation).toBe(before.generation + 1);
    for (const name of ["fills", "bars", "metrics", "events"] as const) {
      const [old, made] = [before.tables[name]!, manifest.tables[name]!];
      expect({ ...latestView(made), parquet: [] }).toEqual({ ...latestView(old), parquet: [] });
      expect(made.proven!.parquet[0]!.file).not.toBe(old.proven!.parquet[0]!.file);
      expect(await parquetLines(under.archive, run, name)).toEqual(tables.get(name)!.map(({ line }) => line));
    }
    await under.expectVerifiedDeep(run);
    expect((await under.rebuild(run, before.generation)).changed).toBe(false);
  });

  test("keeps the rows set aside from it, and rows that only the line-by-line path can read", async () => {
    const rows = rowsAt(run, "fills", hours(30).map(at)).map((row, i) => {
      const entries = Object.entries(JSON.parse(row.line) as object);
      // each line in another order of its keys: more shapes than the fast path learns
      const turned = [...entries.slice(i % 15), ...entries.slice(0, i % 15)];
      return { ...row, line: JSON.stringify(Object.fromEntries(turned)) };
    });
    rows[7] = { ...rows[7]!, line: rows[7]!.line.replace(/"side":"[^"]*"/, '"side":7') };
    await under.place.archiveRun(new ArraySource(run, new Map([["fills", rows]])));
    const before = latestView((await under.archive.manifest(run))!.tables.fills!);
    expect(before).toMatchObject({ state: "QUARANTINED", certificate: { rows: 29, quarantined: 1 } });
    const lines = await parquetLines(under.archive, run, "fills");
    const { manifest } = await under.rebuild(run, 1);
    expect({ ...latestView(manifest.tables.fills!), parquet: [] }).toEqual({ ...before, parquet: [] });
    expect(await parquetLines(under.archive, run, "fills")).toEqual(lines);
  });

  test("is refused with exit status 5 where a segment is damaged, which is named, and nothing changes", async () => {
    await under.archiveFills(run);
    const { segments } = (await under.archive.manifest(run))!.tables.fills!.proven!;
    const file = join(under.archive.layout.dataDir(run), segments[1]!.file);
    const bytes = await readFile(file);
    bytes[20]! ^= 1;
    await writeFile(file, bytes);
    const before = await under.committedText();
    const { status, stderr, stdout } = await under.command("maintain", "rebuild", "alpha/2022-01-01");
    expect(status).toBe(5);
    expect(stderr).toContain("archive_damaged");
    expect(stderr).toContain(segments[1]!.file);
    expect(stdout).toContain("failed: archive_damaged");
    expect(await under.committedText()).toEqual(before);
  });

  test("waits for a job that holds it, exit status 6, while the others are rebuilt", async () => {
    await under.archiveFills(run);
    await under.archiveFills(second);
    const lock = await lockRun(under.archive.layout, run);
    const { status, stdout } = await under.command("maintain", "rebuild", "--json");
    const report = JSON.parse(stdout) as { runs: object[] };
    expect(status).toBe(6);
    expect(report.runs).toMatchObject([
      { runId: run.runId, exit: 6, error: { code: "locked" } },
      { runId: second.runId, exit: 0, generation: 2, buckets: 1 },
    ]);
    await lock[Symbol.asyncDispose]();
    const again = await under.command("maintain", "rebuild");
    expect(again.stdout).toMatch(
      /2022-01-01 {2}generation 2: .*\n.*2022-02-02 {2}nothing to do, generation 2\n$/,
    );
    expect(again.stderr).toContain("continuing the rebuild of");
    expect((await under.command("maintain", "rebuild")).stdout.match(/generation 3: /g)?.length).toBe(2);
  });

  test("leaves alone what an interrupted job fetched, and says how to go on", async () => {
    const source = await under.archiveFills(run);
    source.tables = new Map([["fills", rowsAt(run, "fills", hours(40).map(at))]]);
    source.storageVersion = "2";
    await under.place.archiveUntil(source, "segment-journalled", 2);
    await expect(under.rebuild(run, 1)).rejects.toMatchObject({ code: "locked", place: { run: run.runId } });
    const { resumedSegments } = await under.place.archiveRun(source);
    expect(resumedSegments).toBeGreaterThan(0);
    expect((await under.rebuild(run, 2)).changed).toBe(true);
    await under.expectVerifiedDeep(run);
  });

  test("is not found under a misspelt name, of which nothing stays behind", async () => {
    await under.archiveFills(run);
    const { status, stderr } = await under.command("maintain", "rebuild", "alpha/2022-01-02");
    expect(status).toBe(2);
    expect(stderr).toContain("not_archived");
    expect(await readdir(join(under.archive.dir, "locks", "alpha"))).toEqual([]);
  });
});
