import { cp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { lockRun } from "../../src/archive/lock.ts";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

const command = (...args: string[]) => runInside([...args, "--archive", under.archive.dir]);
const link = () => join(under.archive.layout.tableDir("fills", worldRun), "all.parquet");
const committed = () => under.dataFile(under.manifest.tables.fills!.proven!.parquet[0]!.file);

test("links that are missing are made again, nothing else changes, and then there is nothing to do", async () => {
  await rm(under.archive.layout.tablesRoot, { recursive: true });
  const data = join(under.archive.dir, "data");
  const before = await readdir(data, { recursive: true });
  const { status, stdout } = await command("maintain", "rebuild", "--links");
  expect([status, stdout]).toEqual([0, "alpha/2022-01-01  3 of 3 links made\n3 links made, of 1 run\n"]);
  expect((await stat(link())).ino).toBe((await stat(committed())).ino);
  expect(await readdir(data, { recursive: true })).toEqual(before);
  expect((await command("verify")).stdout).not.toContain("links");
  const again = await command("maintain", "rebuild", "--links", "--json", "alpha/2022-01-01");
  expect(JSON.parse(again.stdout)).toEqual({ exit: 0, made: 0, runs: [{ ...worldRun, links: 3, made: 0 }] });
});

test("copies become links, whatever is in them and however new they are", async () => {
  // the copy under test has copies of all links
  expect((await command("maintain", "rebuild", "--links")).stdout).toContain("3 of 3 links made");
  const { size } = await stat(committed());
  await rm(link());
  await writeFile(link(), Buffer.alloc(size));
  const bars = join(under.archive.layout.tableDir("bars", worldRun), "all.parquet");
  const copy = `${bars}.copy`;
  await cp(bars, copy);
  await rm(bars);
  await cp(copy, bars);
  await rm(copy);
  expect((await command("maintain", "rebuild", "--links")).stdout).toContain("2 of 3 links made");
  expect(await readFile(link())).toEqual(await readFile(committed()));
  expect((await stat(bars)).nlink).toBe(2);
});

test("a run on which a job works is left, and said", async () => {
  await using _lock = await lockRun(under.archive.layout, worldRun);
  const { status, stdout, stderr } = await command("maintain", "rebuild", "--links");
  expect([status, stdout]).toEqual([6, "0 links made, of 0 runs\n"]);
  expect(stderr).toContain("locked");
});

test("--links goes with neither --widen nor --tables", async () => {
  for (const more of [
    ["--widen", "fills.price"],
    ["--tables", "fills"],
  ])
    expect((await command("maintain", "rebuild", "--links", ...more)).status).toBe(2);
});
