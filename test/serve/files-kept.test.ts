// @module-tag slow
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manifestText } from "../../src/archive/manifest/manifest.ts";
import { parseManifest } from "../../src/archive/manifest/parse-manifest.ts";
import { removeRun } from "../../src/archive/upkeep/remove.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { unproven } from "../fixtures/archive/unproven-table.ts";
import { bytesOf, ServedFiles } from "../fixtures/served/served-files.ts";
import { type ArrayRow, ArraySource } from "../fixtures/source/array-source.ts";

const before = world({ fills: hours(60), bars: hours(3) });
let archived: TableWorld;
let origin: ArraySource;
let served: ServedFiles;
/** Hours since the first commit. */
let hour: number;
beforeEach(async () => {
  hour = 0;
  archived = await TableWorld.create();
  origin = new ArraySource(run, before);
  await archive();
  const clock = () => at(1_000_000 + hour);
  served = await ServedFiles.open(archived.archive, { clock });
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
  await archived[Symbol.asyncDispose]();
});

const archive = () => archived.archiveRun(origin, { clock: () => at(1_000_000 + hour) });

/** Commits the run with other fills, of which the bars know nothing. */
async function commit(version: string, rows: readonly ArrayRow[]) {
  origin.storageVersion = version;
  origin.tables = new Map([...before, ["fills", [...rows]]]);
  expect((await archive()).changed).toBe(true);
}

const after = repriced(before.get("fills")!);
const urlOf = async (table: "fills" | "bars") => (await served.list(table)).files[0]!.url;
const status = async (url: string) => (await served.get(url)).status;
const parquetOf = async (generation: number) =>
  (await readdir(archived.archive.layout.dataDir(run))).filter(
    (name) => name.startsWith(`fills.g${generation}.`) && name.endsWith(".parquet"),
  ).length;

test("an address stays good for an hour after its file was replaced, whatever is committed meanwhile; then it is gone", async () => {
  const url = await urlOf("fills");
  const { content } = (await served.committed(run, "fills"))[0]!;
  await commit("2", after);
  hour = 0.5;
  await commit("3", before.get("fills")!.slice(1));
  expect((await bytesOf(await served.get(url))).equals(content)).toBe(true);
  expect((await served.get(url, { range: "bytes=-4" })).status).toBe(206);
  expect((await served.get(url, {}, "HEAD")).headers.get("content-length")).toBe(String(content.length));
  expect((await served.list("fills")).files.map((file) => file.generation)).toEqual([3]);
  hour = 1;
  // still on the disk, for no job has removed it
  expect(await parquetOf(1)).toBe(1);
  const response = await served.get(url);
  const error = {
    code: "gone",
    message: "the file was replaced and is no longer kept: list the table again",
  };
  expect([response.status, await response.json()]).toEqual([410, { ok: false, error }]);
  expect((await served.get(url, {}, "HEAD")).status).toBe(410);
});

test("an address of a file that commits leave as it is stays good", async () => {
  const url = await urlOf("bars");
  await commit("2", after);
  hour = 5;
  await commit("3", before.get("fills")!);
  expect(await status(url)).toBe(200);
  const { bucket, first } = (await served.committed(run, "bars"))[0]!;
  expect((await served.list("bars")).files).toMatchObject([
    { url, generation: 1, bucket, min_ts_event: first.ts },
  ]);
});

test("a commit removes what was replaced an hour ago, and a job that commits nothing does as well", async () => {
  await commit("2", after);
  hour = 0.9;
  await commit("3", before.get("fills")!);
  expect([await parquetOf(1), await parquetOf(2), await parquetOf(3)]).toEqual([1, 1, 1]);
  hour = 1;
  await commit("4", after);
  expect([await parquetOf(1), await parquetOf(2), await parquetOf(3)]).toEqual([0, 1, 1]);
  hour = 2;
  expect((await archive()).changed).toBe(false);
  expect([await parquetOf(2), await parquetOf(3), await parquetOf(4)]).toEqual([0, 0, 1]);
  expect(await archived.archive.manifest(run)).toMatchObject({ generation: 4 });
});

test("a kill between a commit and its end takes no file away from readers", async () => {
  const url = await urlOf("fills");
  origin.storageVersion = "2";
  origin.tables = new Map([...before, ["fills", after]]);
  await archived.archiveUntil(origin, "links-refreshed", 1);
  expect((await archive()).changed).toBe(false);
  expect(await status(url)).toBe(200);
});

test("verify knows what is kept from what nobody knows", async () => {
  await commit("2", after);
  const checks = async () =>
    (await verifyRun(archived.archive, run)).checks.filter(({ check }) => check === "unreferenced");
  const [kept] = await checks();
  expect(kept).toMatchObject({ level: "ok", detail: expect.stringContaining("kept for readers") });
  expect(kept!.detail).toMatch(/^every file is named by the manifest, \d+ replaced files kept/);
});

test("of a run that is removed nothing is given, nor where it is archived again under the same names", async () => {
  const url = await urlOf("fills");
  await commit("2", after);
  await removeRun(archived.archive, run);
  expect(await status(url)).toBe(404);
  origin.storageVersion = "1";
  await archive();
  const again = await urlOf("fills");
  expect(again.replace(/\.[0-9a-f]{16}\./, "")).toBe(url.replace(/\.[0-9a-f]{16}\./, ""));
  expect(await status(again)).toBe(200);
  expect(await status(url)).toBe(410);
});

test("a former file that was lost within its hour is damage", async () => {
  const url = await urlOf("fills");
  const { file } = (await served.committed(run, "fills"))[0]!;
  await commit("2", after);
  await rm(join(archived.archive.layout.dataDir(run), file));
  expect(await status(url)).toBe(502);
});

test("of a table that is not proven any more former files are not given either", async () => {
  const url = await urlOf("fills");
  await commit("2", after);
  expect(await status(url)).toBe(200);
  const manifest = (await archived.archive.manifest(run))!;
  expect(manifest.former!.some(({ proven }) => proven)).toBe(true);
  const tables = { ...manifest.tables, fills: unproven(manifest.tables.fills!, "INCOMPLETE") };
  await writeFile(archived.archive.layout.manifestFile(run), manifestText({ ...manifest, tables }));
  for (const path of [url, "/fills?instance=alpha&run_id=2022-01-01"]) {
    const response = await served.get(path);
    expect([response.status, await response.json()]).toMatchObject([
      409,
      { error: { code: "history_incomplete" } },
    ]);
  }
  const response = await served.get("/fills");
  expect(response.headers.get("runvault-withheld")).toBe("1");
  const withheld = [{ instance: "alpha", run_id: "2022-01-01", state: "INCOMPLETE" }];
  expect(await response.json()).toEqual({ files: [], withheld });
  await using bold = await ServedFiles.open(archived.archive, { allowIncomplete: true });
  expect((await bold.list("fills")).files).toMatchObject([{ state: "INCOMPLETE", rows: 60 }]);
});

test("a manifest without former files is read, and says none until something is replaced", async () => {
  const manifest = (await archived.archive.manifest(run))!;
  expect("former" in manifest).toBe(false);
  expect(parseManifest(manifestText(manifest), "m.json")).toEqual(manifest);
  await commit("2", after);
  const { former } = (await archived.archive.manifest(run))!;
  expect(former!.map(({ table }) => table)).toContain("fills");
  expect(former!.some(({ table }) => table === "bars")).toBe(false);
});
