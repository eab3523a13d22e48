// @module-tag slow
import { copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { planRun } from "../../src/extract/plan/plan-run.ts";
import { defaultSettings } from "../../src/extract/run/archive-run.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let tables: TableWorld;
let source: ArraySource;
let manifest: Manifest;
beforeEach(async () => {
  tables = await TableWorld.create();
  source = new ArraySource(run, world({ fills: hours(60), orders: hours(10) }));
  manifest = (await tables.archiveRun(source)).manifest;
  source.asked.length = 0;
});
afterEach(() => tables[Symbol.asyncDispose]());

const dataFile = (name: string) => join(tables.archive.layout.dataDir(run), name);
const segmentAt = (index: number) => manifest.tables.fills!.proven!.segments[index]!;
const rowsOf = (name: "fills" | "orders") => source.tables.get(name)!;

async function flip(file: string): Promise<void> {
  const bytes = await readFile(file);
  bytes[bytes.length >> 1]! ^= 1;
  await writeFile(file, bytes);
}

async function expectWhole(): Promise<void> {
  await tables.expectRows("fills", rowsOf("fills"));
  await tables.expectRows("orders", rowsOf("orders"));
  expect(await reportOf(tables.archive, run, { deep: true })).toMatchObject({ damaged: false });
}

describe("archiving a run that is up to date, but for a file that", () => {
  test("is missing: Parquet is made anew from its segments, and nothing is fetched", async () => {
    await rm(dataFile(manifest.tables.fills!.proven!.parquet[0]!.file));
    const { changed } = await tables.archiveRun(source);
    expect(changed).toBe(true);
    expect(source.asked).toEqual([]);
    await expectWhole();
    expect((await tables.archiveRun(source)).changed).toBe(false);
  });

  test.each([{}, { literal: true }])(
    "is missing: the window of a segment is fetched again, manners %j",
    async (manners) => {
      source.manners = manners;
      source.storageVersion = manners.literal ? undefined : "1";
      const { file, from, to } = segmentAt(2);
      await rm(dataFile(file));
      await tables.archiveRun(source);
      if (!manners.literal) {
        expect(source.asked.every(({ table }) => table === "fills")).toBe(true);
        expect(source.asked.every((asked) => asked.from! >= BigInt(from) && asked.to! <= BigInt(to))).toBe(
          true,
        );
      }
      await expectWhole();
    },
  );

  test("has another size: it is made anew", async () => {
    await writeFile(dataFile(segmentAt(0).file), "short");
    await writeFile(dataFile(manifest.tables.orders!.proven!.parquet[0]!.file), "short");
    await tables.archiveRun(source);
    await expectWhole();
  });

  test("has other bytes: it is made anew once somebody found them", async () => {
    await flip(dataFile(segmentAt(1).file));
    await flip(dataFile(manifest.tables.orders!.proven!.parquet[0]!.file));
    expect((await tables.archiveRun(source)).changed).toBe(false);
    expect((await reportOf(tables.archive, run)).damaged).toBe(true);
    expect((await tables.archiveRun(source)).changed).toBe(true);
    await expectWhole();
  });

  test("is a document: it is fetched again", async () => {
    await rm(dataFile(manifest.documents.summary!.file));
    expect((await tables.archiveRun(source)).changed).toBe(true);
    await expectWhole();
  });
});

test("the dry run says what of a lost segment would be fetched", async () => {
  await rm(dataFile(segmentAt(2).file));
  const plan = await planRun({
    source,
    archive: tables.archive,
    folder: tables.archive.dir,
    run,
    tables: ["fills", "orders"],
    settings: { ...defaultSettings, sliceRows: 20 },
    clock: () => at(1_000_000),
    retry: quickRetry(),
    signal: new AbortController().signal,
  });
  expect(plan.upToDate).toBe(false);
  const rows = plan.tables.map(({ table, rows }) => [table, rows]);
  expect(Object.fromEntries(rows)).toMatchObject({ fills: segmentAt(2).rows, orders: 0 });
});

test("a lost file does not keep other tables from being committed, and stays told of", async () => {
  await rm(dataFile(segmentAt(0).file));
  source.tables = world({ fills: hours(60), orders: hours(30) });
  source.storageVersion = "2";
  const refused = new RunvaultError("server_error", "not now");
  source.manners = { refuses: ({ table }) => (table === "fills" ? refused : undefined) };
  await tables.archiveRun(source);
  await tables.expectRows("orders", rowsOf("orders"));
  expect((await reportOf(tables.archive, run)).damaged).toBe(true);
  source.manners = {};
  await tables.archiveRun(source);
  await expectWhole();
});

test("a lost segment that comes back while its job is interrupted counts once", async () => {
  const file = dataFile(segmentAt(0).file);
  await copyFile(file, `${file}.copy`);
  await rm(file);
  await tables.archiveUntil(source, "segment-journalled", 1);
  await copyFile(`${file}.copy`, file);
  await rm(`${file}.copy`);
  await rm(dataFile(manifest.tables.orders!.proven!.parquet[0]!.file));
  await tables.archiveRun(source);
  await expectWhole();
});
