import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lockRun } from "../../src/archive/lock.ts";
import type { ArchiveJob } from "../../src/extract/run/archive-run.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";

/** Counts what is asked of it beside its list. */
class CountedSource extends ArraySource {
  beside = 0;

  override async facts(...asked: Parameters<ArraySource["facts"]>) {
    this.beside++;
    return await super.facts(...asked);
  }

  override async document(...asked: Parameters<ArraySource["document"]>) {
    this.beside++;
    return await super.document(...asked);
  }

  get requests(): number {
    return this.beside + this.asked.length;
  }
}

const sourceOf = (manners: Manners = {}) =>
  new CountedSource(run, world({ fills: hours(5) }), { times: { started: at(0), ended: at(4) }, ...manners });

async function archived(source: CountedSource) {
  const tables = await TableWorld.create();
  await tables.archiveRun(source);
  const before = source.requests;
  const again = async (more: Partial<ArchiveJob> = {}) => {
    const { changed, manifest } = await tables.archiveRun(source, { isManifestEnough: true, ...more });
    return { changed, requests: source.requests - before, generation: manifest.generation };
  };
  return { tables, again };
}

it("is left alone by its list and its manifest, with no lock, no request and no look at its links", async () => {
  const { tables, again } = await archived(sourceOf());
  await using _tables = tables;
  const { layout } = tables.archive;
  const links = layout.tableDir("fills", run);
  await rm(links, { recursive: true });
  await using _held = await lockRun(layout, run);
  expect(await again()).toEqual({ changed: false, requests: 0, generation: 1 });
  await expect(stat(links)).rejects.toThrow("ENOENT");
});

it("is looked into where the list says anything else", async () => {
  const source = sourceOf();
  const { tables, again } = await archived(source);
  await using _tables = tables;
  source.storageVersion = "2";
  source.tables.set("fills", repriced(source.tables.get("fills")!));
  expect(await again()).toMatchObject({ changed: true, generation: 2 });
  await tables.expectRows("fills", source.tables.get("fills")!);
  source.manners = { ...source.manners, times: { started: at(1), ended: at(4) } };
  const { manifest } = await tables.archiveRun(source, { isManifestEnough: true });
  expect(manifest.tables.fills!.attempt.error?.code).toBe("history_identity_conflict");
});

it("is looked into where a file is gone, work is pending, more tables or a stronger proof are wanted", async () => {
  const source = sourceOf();
  const { tables, again } = await archived(source);
  await using _tables = tables;
  const { layout } = tables.archive;
  await mkdir(layout.pendingDir(run), { recursive: true });
  expect((await again()).changed).toBe(false);
  await expect(stat(layout.pendingDir(run))).rejects.toThrow("ENOENT");

  const data = layout.dataDir(run);
  const [parquet] = (await readdir(data)).filter((name) => name.endsWith(".parquet"));
  await rm(join(data, parquet!));
  expect(await again()).toMatchObject({ changed: true, generation: 2 });
  await tables.expectRows("fills", source.tables.get("fills")!);

  expect((await again({ settings: { fingerprint: true } })).changed).toBe(true);
  expect((await again({ tables: ["fills", "orders"] })).changed).toBe(true);
});

it("is looked into where no version vouches for it, or its source tells no beginning", async () => {
  for (const [version, started] of [
    [undefined, at(0)],
    ["1", 0n],
  ] as const) {
    const source = sourceOf({ times: { started, ended: at(4) } });
    source.storageVersion = version;
    const { tables, again } = await archived(source);
    await using _tables = tables;
    await rm(tables.archive.layout.tableDir("fills", run), { recursive: true });
    expect((await again()).changed).toBe(false);
    await stat(tables.archive.layout.tableDir("fills", run));
  }
});
