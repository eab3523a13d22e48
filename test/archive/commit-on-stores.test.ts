import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import type { Layout } from "../../src/archive/layout.ts";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { everyFile } from "../../src/archive/manifest/manifest-files.ts";
import { FolderStore } from "../../src/archive/storage/folder-store.ts";
import type { Store } from "../../src/archive/storage/store.ts";
import type { RunvaultError } from "../../src/model/error.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { type FaultKind, FaultyStore, StoreFault } from "../fixtures/storage/faulty-store.ts";
import { MemoryStore } from "../fixtures/storage/memory-store.ts";

type OpenStore = (layout: Layout) => Store;

/** Opens the store of one archive. */
interface Stores {
  readonly open: OpenStore;
  /** Opens that of a copy of the archive's folder, with the same in it. */
  copied(): Stores;
}

const folder: Stores = { open: (layout) => new FolderStore(layout), copied: () => folder };

function memory(from?: MemoryStore): Stores {
  let opened: MemoryStore | undefined;
  return {
    open: ({ dir }) => {
      const copies = join(dir, "..", "copies");
      opened ??= from?.copy(copies) ?? new MemoryStore(copies);
      return opened;
    },
    copied: () => memory(opened),
  };
}

const kinds: Record<string, () => Stores> = { "a folder": () => folder, memory };

const first = () => new ArraySource(run, world({ fills: hours(5) }), { final: false });
const second = () => new ArraySource(run, world({ fills: hours(8) }));
const sourceOf = (generation: number) => (generation === 2 ? second() : first());

/** An archive of nothing, or of the run while it went on, and in it the work of the next job, which was killed before its commit. */
async function certified(stores: Stores, generation: number): Promise<TableWorld> {
  const tables = await TableWorld.create({ store: stores.open });
  if (generation === 2) await tables.archiveRun(first());
  // what a killed job left under a name that does not come again
  const { store, layout } = tables.archive;
  await store.putIfAbsent(layout.committedKey(run, "data", "fills.g9.000001.parquet"), Buffer.from("left"));
  await tables.archiveUntil(sourceOf(generation), "certified", 1);
  return tables;
}

/** What the manifest names is there, byte for byte, and so is what it keeps for readers. */
async function expectWhole({ store, layout }: Archive, manifest: Manifest | null): Promise<void> {
  if (manifest === null) return;
  for (const { folder, file, sha256 } of [...everyFile(manifest), ...(manifest.former ?? [])]) {
    const bytes = await store.get(layout.committedKey(run, folder, file), 1 << 20);
    expect(bytes === null ? null : sha256Of(bytes), file).toBe(sha256);
  }
}

/** How many rows Parquet of these hashes was found to have, each as it should be. */
const known = new Map<string, number>();

/** The run is archived whole, nothing is left over, and people see what is proven. */
async function expectDone(tables: TableWorld, archive: Archive, source: ArraySource): Promise<void> {
  const { store, layout } = archive;
  const manifest = (await archive.manifest(run))!;
  await expectWhole(archive, manifest);
  const kept = [...everyFile(manifest), ...(manifest.former ?? [])].map(({ file }) => file);
  const names = await store.names(layout.committedKey(run, "data"));
  expect(names).toEqual([...new Set(kept)].sort());
  expect(await store.names("runs/alpha/")).toEqual([`${run.runId}.json`]);
  expect(await readdir(layout.pendingRoot).catch(() => [])).toEqual([]);
  for (const [name, rows] of source.tables) {
    const { parquet } = manifest.tables[name]!.proven!;
    // the same bytes have the same rows: Parquet is read once
    const bytes = parquet.map(({ sha256 }) => sha256).join(" ");
    if (known.get(bytes) !== rows.length) await tables.expectRows(name, rows);
    known.set(bytes, rows.length);
    expect(await segmentLines(archive, run, name)).toEqual(rows.map(({ line }) => line));
    for (const { bucket, sha256 } of parquet) {
      const seen = await readFile(join(layout.tableDir(name, run), `${bucket}.parquet`));
      expect(sha256Of(seen)).toBe(sha256);
    }
  }
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

describe.each(Object.entries(kinds))("a commit to %s", (_name, open) => {
  /** Of the first generation and of the second: made once, as each case goes on in a copy. */
  const made = new Map<number, { readonly stores: Stores; readonly tables: TableWorld }>();
  beforeAll(async () => {
    for (const generation of [1, 2]) {
      const stores = open();
      made.set(generation, { stores, tables: await certified(stores, generation) });
    }
  });
  afterAll(async () => {
    for (const { tables } of made.values()) await tables[Symbol.asyncDispose]();
  });

  /** A copy of the archive, whose next job goes on with the commit; `around` is what the job has in place of its store. */
  async function begin(generation: number, around = (store: Store) => store) {
    const { stores, tables: from } = made.get(generation)!;
    const { open: openStore } = stores.copied();
    const store: OpenStore = (layout) => around(openStore(layout));
    const tables = await TableWorld.create({ store, from: from.archive.dir });
    return { tables, source: sourceOf(generation), openStore };
  }

  /** One commit with one fault; what the fault struck, null where the commit has fewer than n that it might strike. */
  async function commitWith(generation: number, kind: FaultKind, nth: number): Promise<string | null> {
    const fault = new StoreFault(kind, nth);
    const {
      tables: begun,
      source,
      openStore,
    } = await begin(generation, (store) => new FaultyStore(store, fault));
    await using tables = begun;
    const archive = await openArchive(tables.archive.dir, { store: openStore });
    const before = await archive.manifest(run);
    const error = await tables
      .archiveRun(source, { step: (name) => name === "certified" && fault.arm() })
      .then(() => null)
      .catch((thrown: RunvaultError) => thrown);
    if (fault.struck === null) {
      expect(error).toBe(null);
      return null;
    }
    const now = await archive.manifest(run);
    if (now?.generation !== generation) expect(now).toEqual(before);
    await expectWhole(archive, now);
    await expectWhole(archive, before);
    const isManifest = /^(?:putIfAbsent|replaceIf) runs/.test(fault.struck);
    if (kind !== "is lost") expect(error?.code, fault.struck).toBe("storage_failed");
    // a file's name that is taken is freed: no manifest has it
    else expect(error?.code, fault.struck).toBe(isManifest ? "locked" : undefined);
    await tables.archiveRun(source);
    await expectDone(tables, archive, source);
    return fault.struck;
  }

  describe.each([1, 2])("of generation %i", (generation) => {
    it.each<FaultKind>(["fails before", "fails after", "is lost"])("that %s, wherever", async (kind) => {
      const struck: string[] = [];
      for (;;) {
        const what = await commitWith(generation, kind, struck.length + 1);
        if (what === null) break;
        struck.push(what.split(" ")[0]!);
      }
      const puts = generation === 1 ? "putIfAbsent" : "replaceIf";
      const operations = ["get", "head", "localFile", "names", "putAllIfAbsent", puts, "remove"];
      expect([...new Set(struck)].sort()).toEqual(
        kind === "is lost" ? ["putAllIfAbsent", puts] : operations.sort(),
      );
    });
  });

  it("puts what is pending in the place of what a killed commit left", async () => {
    const { tables: begun, source } = await begin(2);
    await using tables = begun;
    const { store, layout } = tables.archive;
    await tables.archiveUntil(source, "commit-moved-one", 1);
    const files = await readdir(layout.pendingDir(run));
    const pending = files.filter((name) => name !== "journal.ndjson");
    expect(pending.length).toBeGreaterThan(1);
    for (const name of pending) {
      await store.putIfAbsent(layout.committedKey(run, "data", name), Buffer.from("torn"));
    }
    await tables.archiveRun(source);
    await expectDone(tables, tables.archive, source);
  });

  it("leaves what the generation before names as it is, whatever is pending", async () => {
    const { tables: begun, source } = await begin(2);
    await using tables = begun;
    const { layout } = tables.archive;
    const before = (await tables.archive.manifest(run))!;
    const { file } = before.tables.fills!.proven!.segments[0]!;
    await tables.archiveRun(source, {
      step: (name) => {
        if (name === "certified") writeFileSync(join(layout.pendingDir(run), file), "somebody else's");
      },
    });
    await expectWhole(tables.archive, before);
    await expectDone(tables, tables.archive, source);
  });

  it("takes no file's name from a job that committed meanwhile", async () => {
    const other = { key: "", file: "", isDue: false };
    const around = (store: Store) => {
      const putAllIfAbsent: Store["putAllIfAbsent"] = async (objects) => {
        const all = [...objects];
        if (other.isDue) {
          const { token } = (await store.head(other.key))!;
          await store.replaceIf(other.key, (await store.get(other.key, 1 << 20))!, token);
          other.file = all[0]!.key;
          await store.putIfAbsent(other.file, Buffer.from("the other's"));
        }
        return await store.putAllIfAbsent(all);
      };
      return new Proxy(store, {
        get: (target, name: keyof Store) =>
          name === "putAllIfAbsent" ? putAllIfAbsent : target[name].bind(target),
      });
    };
    const { tables: begun, source } = await begin(2, around);
    const { layout } = begun.archive;
    other.key = layout.keyOf(layout.manifestFile(run));
    await using tables = begun;
    other.isDue = true;
    await expect(tables.archiveRun(source)).rejects.toMatchObject({ code: "locked" });
    expect(await tables.archive.store.get(other.file, 100)).toEqual(Buffer.from("the other's"));
  });
});
