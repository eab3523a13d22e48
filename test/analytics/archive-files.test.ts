import { createHash } from "node:crypto";
import { open, rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ArchiveFiles } from "../../src/analytics/files/archive-files.ts";
import type { Archive } from "../../src/archive/archive.ts";
import { type Manifest, manifestText } from "../../src/archive/manifest/manifest.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let archived: TableWorld;
let archive: Archive;
beforeEach(async () => {
  archived = await TableWorld.create();
  archive = archived.archive;
  await archived.archiveRun(new ArraySource(run, world({ fills: hours(60), bars: hours(3) })));
});
afterEach(() => archived[Symbol.asyncDispose]());

const mayAsk = () => true;

test("lists and sums hold no manifest but the one they read", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const [file] = (await archive.manifestFiles()) as [string];
  let given: WeakRef<Manifest>[] = [];
  let most = 0;
  const many: Archive = {
    ...archive,
    manifestFiles: async () => Array.from({ length: 8 }, () => file),
    manifestIn: async () => {
      // what was looked at stays until the turn is over
      await setImmediate();
      collect();
      most = Math.max(most, given.filter((one) => one.deref() !== undefined).length);
      const manifest = await archive.manifestIn(file);
      if (manifest !== null) given.push(new WeakRef(manifest));
      return manifest;
    },
  };
  const files = new ArchiveFiles(many);
  expect((await files.list({ table: "fills", mayAsk })).files.length).toBe(8);
  expect((await files.list({ mayAsk })).files.length).toBe(16);
  given = [];
  const sums = (await files.sums({ mayAsk })).map(({ table, runs, rows }) => [table, runs, rows]);
  expect(sums).toEqual([
    ["fills", 8, 480],
    ["bars", 8, 24],
  ]);
  expect(most).toBeLessThan(5);
});

test("a file that is exchanged while it is hashed is given to nobody, also not to those who find it hashed", async () => {
  // large, so that hashing takes long enough; and without a page of its own on the disk
  const bytes = 2 ** 28;
  const manifest = (await archive.manifest(run))!;
  const fills = manifest.tables.fills!;
  const [parquet] = fills.proven!.parquet as [(typeof fills.proven & {})["parquet"][number]];
  const path = join(archive.layout.dataDir(run), parquet.file);
  await truncate(path, 0);
  await truncate(path, bytes);
  const hash = createHash("sha256");
  for (let at = 0; at < bytes; at += 2 ** 20) hash.update(Buffer.alloc(2 ** 20));
  const large = { ...parquet, storedBytes: bytes, sha256: hash.digest("hex") };
  const { sha256: _, ...rest } = { sha256: "", ...manifest };
  const proven = { ...fills.proven!, parquet: [large] };
  const tables = { ...manifest.tables, fills: { ...fills, proven } };
  await writeFile(archive.layout.manifestFile(run), manifestText({ ...rest, tables }));
  const files = new ArchiveFiles(archive);
  const { name } = (await files.list({ table: "fills", ...run, mayAsk })).files[0]!;
  // as a run that is removed and archived again has other bytes there, to whoever has read the manifest before
  const other = `${path}.other`;
  await using made = await open(other, "w");
  await made.truncate(bytes);
  await made.write("other bytes");
  const first = files.open(run, "fills", name);
  await sleep(30);
  await rename(other, path);
  const second = files.open(run, "fills", name);
  const outcomes = await Promise.allSettled([first, second]);
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") await outcome.value[Symbol.asyncDispose]();
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "archive_damaged" } });
  }
});
