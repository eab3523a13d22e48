// @module-tag slow
import { mkdir, readdir, readFile, rm, symlink, truncate, unlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openQuery } from "../../src/analytics/query/query.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { hashFile } from "../../src/archive/storage/file-hash.ts";
import { removeRun } from "../../src/archive/upkeep/remove.ts";
import { verifyPlaces } from "../../src/archive/verify/verify-places.ts";
import { ArchiveUnderTest, failedChecks, reportOf, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let under: ArchiveUnderTest;
let parquet: string;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(async () => {
  await under.renew();
  parquet = under.dataFile(under.manifest.tables.fills!.proven!.parquet[0]!.file);
});

/** Flips bytes in the middle of a file. */
async function flip(file: string): Promise<void> {
  const bytes = await readFile(file);
  for (const at of [0, 1, 2]) bytes[(bytes.length >> 2) + at * 7]! ^= 0x10;
  await writeFile(file, bytes);
}

async function answer(sql: string): Promise<unknown> {
  await using query = await openQuery(under.archive, { threads: 1 });
  for await (const [row] of (await query.run(sql)).batches()) return row;
}

async function filtered(table: "fills" | "orders"): Promise<number> {
  await using source = openArchiveSource(under.archive);
  let bytes = 0;
  const request = { ...worldRun, table, filters: { symbol: "A" } };
  for await (const chunk of source.rows(request)) bytes += chunk.byteLength;
  return bytes;
}

const count = "SELECT count(*) FROM fills WHERE symbol = 'A'";
const damage = () => ({ code: "archive_damaged", exit: 5, place: { file: parquet }, hint: /--repair/ });

async function expectDamage(work: Promise<unknown>): Promise<void> {
  const { hint, ...rest } = damage();
  await expect(work).rejects.toMatchObject({ ...rest, hint: expect.stringMatching(hint) });
}

describe("flipped bytes in a Parquet file", () => {
  beforeEach(() => flip(parquet));

  test("are damage to a query, and to the archive as a source", async () => {
    await expectDamage(answer(count));
    await expectDamage(filtered("fills"));
  });

  test("are damage to a comparison", async () => {
    await expectDamage(diffArchives(under.archive, under.archive));
  });

  test.each([
    ["export", "fills", "--format", "csv", "--out", "-"],
    ["export", "--list", "fills"],
    ["query", count],
  ])("make %s exit with 5 and name the file", async (...args) => {
    const { status, stdout, stderr } = await runInside([...args, "--archive", under.archive.dir]);
    expect(status).toBe(5);
    expect(stdout).toBe("");
    expect(stderr).toContain(parquet);
  });

  test("are seen where they came after the file was read whole", async () => {
    await under.renew();
    await using query = await openQuery(under.archive, { threads: 1 });
    await query.run(count);
    await flip(parquet);
    await expectDamage(answer(count));
  });
});

describe("a damaged file breaks statements on its table alone", () => {
  test.each(["missing", "flipped", "cut"])("where it is %s", async (how) => {
    if (how === "missing") await unlink(parquet);
    else if (how === "cut") await truncate(parquet, 100);
    else await flip(parquet);
    expect(await answer("SELECT count(*) FROM orders")).toEqual([25n]);
    expect(await answer("SELECT fills_rows FROM runs")).toEqual([25n]);
    expect(await filtered("orders")).toBeGreaterThan(0);
    await expectDamage(answer("SELECT count(*) FROM orders JOIN fills_f USING (symbol)"));
    await expectDamage(answer("WITH f AS (FROM main.FILLS) SELECT count(*) FROM f"));
    await expectDamage(answer("EXPLAIN ANALYZE SELECT (SELECT count(*) FROM fills)"));
    expect(await answer("SELECT column_type FROM (DESCRIBE orders) WHERE column_name = 'ts_event'")).toEqual([
      "TIMESTAMP_NS",
    ]);
  });
});

describe("what is remembered of files", () => {
  const cacheFile = () => under.archive.layout.cacheFile(worldRun);
  const entry = async () => {
    const { layout, store } = under.archive;
    return { mark: (await store.head(layout.keyOf(parquet)))!.token, ...(await hashFile(parquet)) };
  };

  async function remember(seen: unknown): Promise<void> {
    await mkdir(dirname(cacheFile()), { recursive: true });
    const name = parquet.slice(parquet.lastIndexOf("/") + 1);
    await writeFile(cacheFile(), JSON.stringify({ format: 1, files: { [name]: seen } }));
  }

  test("is each file of the tables used, once it was left alone for a moment", async () => {
    await pause(150);
    await answer(count);
    const { files } = JSON.parse(await readFile(cacheFile(), "utf8"));
    expect(Object.keys(files)).toEqual(
      under.manifest.tables.fills!.proven!.parquet.map(({ file }) => file).sort(),
    );
    await answer("SELECT count(*) FROM orders");
    const both = JSON.parse(await readFile(cacheFile(), "utf8"));
    expect(Object.keys(both.files)).toHaveLength(Object.keys(files).length * 2);
  });

  test("saves hashing a file that stayed as it was, and verify does not go by it", async () => {
    await flip(parquet);
    const { sha256 } = under.manifest.tables.fills!.proven!.parquet[0]!;
    await remember({ mark: (await entry()).mark, sha256 });
    await using source = openArchiveSource(under.archive);
    expect(await source.runs(worldRun.instanceId)).toHaveLength(1);
    const { stdout } = await runInside(["export", "--list", "fills", "--archive", under.archive.dir]);
    expect(stdout).toContain(parquet);
    expect(failedChecks(await reportOf(under.archive, worldRun))).toContain("fills files");
    // the same bytes, written again
    await utimes(parquet, 1, 1);
    await expectDamage(answer(count));
  });

  test("that a file is damaged is not believed without another look", async () => {
    await remember({ mark: (await entry()).mark, sha256: "f".repeat(64) });
    await answer(count);
    expect(failedChecks(await reportOf(under.archive, worldRun))).toEqual([]);
  });

  test.each([
    ["garbage", (file: string) => writeFile(file, "{")],
    ["other JSON", (file: string) => writeFile(file, '{"format":1,"files":{"a":1}}')],
    ["keys of no meaning", (file: string) => writeFile(file, '{"format":1,"files":{},"x":0}')],
    ["a folder", (file: string) => mkdir(file)],
    ["a link to nowhere", (file: string) => symlink("/nowhere/at/all", file)],
  ])("is thrown away where it is %s", async (_, make) => {
    await mkdir(dirname(cacheFile()), { recursive: true });
    await make(cacheFile());
    expect(await answer("SELECT count(*) FROM fills")).toEqual([25n]);
    await flip(parquet);
    await expectDamage(answer(count));
  });

  test("is nothing where there is no place for it, and reading works", async () => {
    await writeFile(join(under.archive.dir, "cache"), "");
    expect(await answer("SELECT count(*) FROM fills")).toEqual([25n]);
    expect(await readFile(join(under.archive.dir, "cache"), "utf8")).toBe("");
  });

  test("outlasts two readers at once, is in its place, and goes with its run", async () => {
    await pause(150);
    await Promise.all([answer(count), answer("SELECT count(*) FROM orders"), filtered("fills")]);
    expect((await verifyPlaces(under.archive)).checks).toEqual([expect.objectContaining({ level: "ok" })]);
    expect(await readdir(dirname(cacheFile()))).toEqual([expect.stringMatching(/\.json$/)]);
    await removeRun(under.archive, worldRun);
    expect(await readdir(join(under.archive.dir, "cache"))).toEqual([]);
  });

  test("is not written through a link", async () => {
    const elsewhere = join(under.folder, "elsewhere");
    await rm(elsewhere, { recursive: true, force: true });
    await mkdir(elsewhere);
    await symlink(elsewhere, join(under.archive.dir, "cache"));
    await pause(150);
    await answer(count);
    expect(await readdir(elsewhere)).toEqual([]);
    expect((await verifyPlaces(under.archive)).damaged).toBe(true);
  });
});
