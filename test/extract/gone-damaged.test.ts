import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const rows = world({ fills: hours(60), orders: hours(10) });
let tables: TableWorld;
let manifest: Manifest;
beforeEach(async () => {
  tables = await TableWorld.create();
  manifest = (await tables.archiveRun(new ArraySource(run, rows))).manifest;
});
afterEach(() => tables[Symbol.asyncDispose]());

const dataFile = (name: string) => join(tables.archive.layout.dataDir(run), name);
const parquetOf = (name: "fills" | "orders") => dataFile(manifest.tables[name]!.proven!.parquet[0]!.file);
const segmentOf = (name: "fills" | "orders") => dataFile(manifest.tables[name]!.proven!.segments[0]!.file);

/** A source that does not know the run any more, with how often it was asked. */
function gone() {
  const source = new ArraySource(run, rows);
  const asked = { lists: 0 };
  source.runs = async () => {
    asked.lists++;
    return [];
  };
  source.instances = async () => {
    asked.lists++;
    return [];
  };
  return { source, asked };
}

describe("a run that its gateway does not know any more, of which files are damaged", () => {
  it.each([
    ["missing", (file: string) => rm(file)],
    ["of another size", (file: string) => writeFile(file, "short")],
  ])("has Parquet that is %s made anew from segments, without another request", async (_, damage) => {
    const before = gone();
    expect((await tables.archiveRun(before.source)).changed).toBe(false);
    await damage(parquetOf("fills"));
    const { source, asked } = gone();
    const { changed, manifest: after, warnings } = await tables.archiveRun(source);
    expect({ changed, state: after.state, generation: after.generation }).toEqual({
      changed: true,
      state: "COMPLETE",
      generation: manifest.generation + 1,
    });
    expect(warnings).toEqual([expect.stringContaining("what was proven stays")]);
    expect({ rows: source.asked, asked }).toEqual({ rows: [], asked: before.asked });
    await tables.expectRows("fills", rows.get("fills")!);
    expect(await reportOf(tables.archive, run, { deep: true })).toMatchObject({ damaged: false });
    expect((await tables.archiveRun(source)).changed).toBe(false);
  });

  it("is an error where a segment is lost, closed or not, with what is left mended", async () => {
    await rm(segmentOf("fills"));
    await rm(parquetOf("orders"));
    for (const close of [false, true]) {
      await expect(tables.archiveRun(gone().source, { settings: { close } })).rejects.toMatchObject({
        code: "archive_damaged",
        message: expect.stringMatching(/gateway no longer has the run.*missing or damaged.*fills\./),
        hint: expect.stringContaining("from a backup"),
      });
    }
    await tables.expectRows("orders", rows.get("orders")!);
    expect((await tables.archive.manifest(run))!.closedAt).toBe(null);
    const { changed } = await tables.archiveRun(gone().source, { tables: ["orders"] });
    expect(changed).toBe(false);
  });

  it("is an error where segments are not what was committed, and Parquet is lost beside them", async () => {
    const { file, storedBytes } = manifest.tables.fills!.proven!.segments[0]!;
    await writeFile(dataFile(file), Buffer.alloc(storedBytes));
    await rm(parquetOf("fills"));
    await expect(tables.archiveRun(gone().source)).rejects.toMatchObject({
      code: "archive_damaged",
      hint: expect.stringContaining("from a backup"),
    });
  });

  it("is mended and then closed where it went on", async () => {
    await using growing = await TableWorld.create();
    const first = await growing.archiveRun(new ArraySource(run, rows, { final: false }));
    const { file } = first.manifest.tables.fills!.proven!.parquet[0]!;
    await rm(join(growing.archive.layout.dataDir(run), file));
    const { manifest: closed } = await growing.archiveRun(gone().source, { settings: { close: true } });
    expect(closed).toMatchObject({ state: "OPEN", closedAt: expect.any(String) });
    await growing.expectRows("fills", rows.get("fills")!);
  });
});
