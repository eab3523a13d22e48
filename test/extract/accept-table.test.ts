// @module-tag slow
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lockRun } from "../../src/archive/lock.ts";
import { acceptanceOf } from "../../src/archive/manifest/acceptance.ts";
import { type Manifest, manifestText } from "../../src/archive/manifest/manifest.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { acceptTable } from "../../src/archive/write/accept-table.ts";
import { RunLists } from "../../src/extract/choose/run-lists.ts";
import { rebuildRun } from "../../src/extract/rebuild/rebuild-run.ts";
import type { ArchiveJob } from "../../src/extract/run/archive-run.ts";
import { exitOfRun } from "../../src/extract/run/exit-of-run.ts";
import { heldStanding } from "../../src/extract/run/held-standing.ts";
import { verifyAgainst } from "../../src/extract/run/verify-against.ts";
import { exit, RunvaultError } from "../../src/model/error.ts";
import { type TableName, tableNamed } from "../../src/model/profile/table.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const times = { started: at(0), ended: at(40) };
const reason = "one row has no price";

/** Fills with a row that is none, and orders that are whole. */
function sourceOf(manners: Manners = {}): ArraySource {
  const tables = world({ fills: hours(30), orders: hours(10) });
  const fills = tables.get("fills")!;
  fills[3] = { ...fills[3]!, line: fills[3]!.line.replace(/"price":"[^"]*"/, '"price":"a lot"') };
  return new ArraySource(run, tables, { times, ...manners });
}

/** An archive of such a run, of which the fills are accepted unless said. */
class Night implements AsyncDisposable {
  readonly source: ArraySource;
  readonly tables: TableWorld;
  #night = 1_000_000;

  private constructor(source: ArraySource, tables: TableWorld) {
    this.source = source;
    this.tables = tables;
  }

  static async first(source = sourceOf()): Promise<Night> {
    const night = new Night(source, await TableWorld.create());
    const { manifest } = await night.job();
    expect(manifest.state).not.toBe("COMPLETE");
    return night;
  }

  async accept(
    table: TableName = "fills",
    word: { by: string; reason: string } | null = { by: "me@here", reason },
    step: (name: string) => void = () => {},
  ) {
    const { archive } = this.tables;
    return await acceptTable({
      ...{ archive, run, table, word, step, tool: "test" },
      clock: () => at(this.#night++),
    });
  }

  /** The next job: what it came to, and how many rows it asked for, and of which tables. */
  async job(more: Partial<ArchiveJob> = {}) {
    const before = this.source.asked.length;
    const clock = () => at(this.#night);
    const done = await this.tables.archiveRun(this.source, { clock, ...more });
    this.#night++;
    const asked = [...new Set(this.source.asked.slice(before).map(({ table }) => table))].sort();
    const { manifest, changed, warnings } = done;
    return {
      manifest,
      changed,
      warnings,
      asked,
      exit: exitOfRun(manifest, {}),
      fills: manifest.tables.fills!,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tables[Symbol.asyncDispose]();
  }
}

const refusals = { INCOMPLETE: new RunvaultError("resource_not_found", "no such thing") };

it("keeps a table as it is: its state stays, no job fails by it, and none asks for it or takes the run's lock", async () => {
  await using night = await Night.first();
  expect((await night.job()).exit).toBe(exit.incomplete);
  const { manifest, table } = await night.accept();
  expect(table).toMatchObject({
    state: "QUARANTINED",
    accepted: { by: "me@here", reason, outcome: "QUARANTINED", storageVersion: "1", gatewayRows: "30" },
  });
  const { archive } = night.tables;
  const list = new RunLists(night.source, { finishedStatus: [], settled: () => at(1_000_000) });
  const described = await list.describe(run);
  const wanted = (["fills", "orders"] as const).map(tableNamed);
  const asked = { require: "any", fingerprint: false, recheckBefore: null } as const;
  expect(await heldStanding(archive, manifest, described, wanted, asked)).toBe("current");
  const unversioned = { ...described, storageVersion: undefined };
  expect(await heldStanding(archive, manifest, unversioned, wanted, asked)).toBe("unvouched");
  const changed = { ...described, storageVersion: "2" };
  expect(await heldStanding(archive, manifest, changed, wanted, asked)).toBe("behind");
  await using _held = await lockRun(archive.layout, run);
  const next = await night.job({ isManifestEnough: true });
  expect(next).toMatchObject({ changed: false, asked: [], warnings: [], exit: exit.done });
  expect([next.manifest.generation, next.manifest.tables]).toEqual([manifest.generation, manifest.tables]);
  expect(next.manifest.state).toBe("QUARANTINED");
});

it("leaves what it shows of the rows to readers, and passes verify, which tells it", async () => {
  await using night = await Night.first();
  await night.accept();
  const options = { duckdb: sharedDuckDB, deep: true };
  const report = await verifyRun(night.tables.archive, run, options);
  expect(report).toMatchObject({ damaged: false, unproven: false, exit: exit.done });
  const told = report.checks.filter(({ level }) => level === "notice").map(({ detail }) => detail);
  expect(told.join()).toMatch(
    /QUARANTINED: 1 row set aside; .*accepted as it is by me@here at .*: one row has no price/,
  );
});

it("passes verify against the gateway as long as that counts what it counted", async () => {
  const source = sourceOf();
  await using night = await Night.first(source);
  const { manifest, table } = await night.accept();
  const counted = (gatewayRows: string) => {
    const fills = { ...table, accepted: { ...table.accepted!, gatewayRows } };
    return { ...manifest, tables: { ...manifest.tables, fills } };
  };
  source.tables.set("fills", source.tables.get("fills")!.slice(0, 20));
  expect((await verifyAgainst(source, counted("20"))).unproven).toBe(false);
  expect((await verifyAgainst(source, counted("30"))).unproven).toBe(true);
});

it.each([
  [
    "an error of the gateway",
    { refuses: ({ table }) => (table === "fills" ? refusals.INCOMPLETE : undefined) },
    "INCOMPLETE",
  ],
  ["a weaker proof", {}, "UNVERIFIED"],
] as [string, Manners, string][])("keeps a table that is as it is for %s", async (_, manners, state) => {
  const settings = state === "UNVERIFIED" ? { settings: { require: "hashed" as const } } : {};
  const source = sourceOf({ ...manners });
  source.tables = world({ fills: hours(30), orders: hours(10) });
  await using tables = await TableWorld.create();
  const wanted: TableName[] = ["fills"];
  const first = await tables.archiveRun(source, { tables: wanted, ...settings });
  expect(first.manifest.tables.fills).toMatchObject({ state });
  const word = { by: "me@here", reason };
  await acceptTable({
    archive: tables.archive,
    run,
    table: "fills",
    word,
    clock: () => at(1_000_001),
    tool: "test",
  });
  const before = source.asked.length;
  const again = await tables.archiveRun(source, { tables: wanted, ...settings });
  expect([again.changed, source.asked.length - before]).toEqual([false, 0]);
  expect(exitOfRun(again.manifest, {})).toBe(exit.done);
});

it("ends with another storage version, which is told, and the table is fetched", async () => {
  await using night = await Night.first();
  await night.accept();
  night.source.storageVersion = "2";
  const next = await night.job({ isManifestEnough: true });
  expect(next.warnings).toEqual([
    'fills is no longer accepted as it is: the storage version was "1", and is now "2"',
  ]);
  expect(next.asked).toContain("fills");
  expect(next.fills).toMatchObject({ state: "QUARANTINED" });
  expect(next.fills.accepted).toBe(undefined);
  expect(next.exit).toBe(exit.incomplete);
});

it("ends, without versions, with another count", async () => {
  const source = sourceOf();
  source.storageVersion = undefined;
  await using night = await Night.first(source);
  await night.accept();
  expect(await night.job()).toMatchObject({ changed: false, asked: [], warnings: [], exit: exit.done });
  const late = world({ fills: [35] }).get("fills")![0]!;
  source.tables
    .get("fills")!
    .push({ ...late, seq: 31n, line: late.line.replace(/"seq":"\d+"/, '"seq":"31"') });
  const next = await night.job();
  expect(next.warnings).toEqual([
    "fills is no longer accepted as it is: the gateway counted 30 rows of it, and now counts 31",
  ]);
  expect(next.fills.accepted).toBe(undefined);
});

it("stands for a finished run of which nothing tells that it changed, and ends when a run that went on has ended", async () => {
  const literal = sourceOf({ literal: true });
  await using finished = await Night.first(literal);
  await finished.accept();
  expect(await finished.job()).toMatchObject({ changed: false, asked: [], exit: exit.done });

  const growing = sourceOf({ final: false });
  await using night = await Night.first(growing);
  await night.accept();
  const kept = await night.job();
  expect(kept.asked).not.toContain("fills");
  expect([kept.exit, acceptanceOf(kept.fills)?.reason]).toEqual([exit.done, reason]);
  growing.manners = { ...growing.manners, final: true };
  const over = await night.job();
  expect(over.warnings).toEqual(["fills is no longer accepted as it is: the run has ended since"]);
  expect(over.asked).toContain("fills");
});

it("of a run that goes on without a version ends with the next job", async () => {
  const source = sourceOf({ final: false });
  source.storageVersion = undefined;
  await using night = await Night.first(source);
  await night.accept();
  const next = await night.job();
  expect(next.warnings).toEqual(["fills is no longer accepted as it is: the run is still growing"]);
  expect(next.asked).toContain("fills");
});

it("outlives jobs on other tables, a change of types, and a recheck that the rest is due for", async () => {
  await using night = await Night.first();
  const { table } = await night.accept();
  const orders = night.source.tables.get("orders")!;
  await rm(join(night.tables.archive.layout.dataDir(run), (await fileOf(night, "orders"))!));
  const mended = await night.job();
  expect(mended).toMatchObject({ changed: true, exit: exit.done });
  expect(mended.fills).toEqual(table);
  await night.tables.expectRows("orders", orders);

  const rechecked = await night.job({ settings: { recheckBefore: at(1_000_010) } });
  expect(rechecked.asked).toEqual(["orders"]);
  expect(rechecked.fills).toEqual(table);
  // what is accepted is not due for ever
  const { signal } = new AbortController();
  const settled = await night.job({ settings: { recheckBefore: at(999_999) }, signal });
  expect(settled).toMatchObject({ changed: false, asked: [] });

  const { archive } = night.tables;
  const rebuilt = await rebuildRun({
    archive,
    run,
    upTo: 99,
    clock: () => at(1_000_020),
    signal,
    tool: "test",
  });
  expect(rebuilt.changed).toBe(true);
  expect(acceptanceOf(rebuilt.manifest.tables.fills)).toEqual(table.accepted);
  expect(await night.job()).toMatchObject({ changed: false, asked: [], exit: exit.done });
});

async function fileOf(night: Night, name: TableName): Promise<string | undefined> {
  const manifest = await night.tables.archive.manifest(run);
  return manifest!.tables[name]!.proven!.parquet[0]?.file;
}

it("ends where files of the table are lost", async () => {
  await using night = await Night.first();
  const { table } = await night.accept();
  const [segment] = table.attempt.holding!.segments;
  await rm(join(night.tables.archive.layout.dataDir(run), segment!.file));
  const next = await night.job({ isManifestEnough: true });
  expect(next.warnings).toEqual(["fills is no longer accepted as it is: files of it are missing or damaged"]);
  expect(next.asked).toContain("fills");
});

it("stays for a run that its gateway forgets, and ends where it has another run under the id", async () => {
  await using night = await Night.first();
  const { table, manifest } = await night.accept();
  class Forgetful extends ArraySource {
    override async runs(): Promise<[]> {
      return [];
    }
    override async document(): Promise<null> {
      throw new RunvaultError("run_not_found", "no such run");
    }
    override async facts(): Promise<null> {
      throw new RunvaultError("run_not_found", "no such run");
    }
  }
  const gone = await night.tables.archiveRun(new Forgetful(run, new Map(night.source.tables)));
  expect(exitOfRun(gone.manifest, {})).toBe(exit.done);
  expect(gone.manifest.tables.fills).toEqual(table);
  expect(gone.manifest.generation).toBe(manifest.generation);

  night.source.manners = { ...night.source.manners, times: { started: at(1), ended: at(40) } };
  const other = await night.job();
  expect(other.fills).toMatchObject({ attempt: { error: { code: "history_identity_conflict" } } });
  expect(other.fills.accepted).toBe(undefined);
  expect(other.exit).toBe(exit.incomplete);
});

it("is there whole or not at all wherever its commit is killed, and can be said again", async () => {
  await using night = await Night.first();
  const { archive } = night.tables;
  const killed = new Error("killed");
  for (const at of [
    "commit-moved",
    "manifest-written",
    "manifest-renamed",
    "links-refreshed",
    "pending-removed",
  ]) {
    const step = (name: string) => {
      if (name === at) throw killed;
    };
    await expect(night.accept("fills", undefined, step), at).rejects.toThrow("killed");
    const isThere = !["commit-moved", "manifest-written"].includes(at);
    expect(acceptanceOf((await archive.manifest(run))!.tables.fills) !== null, at).toBe(isThere);
    expect((await verifyRun(archive, run, { duckdb: sharedDuckDB })).damaged, at).toBe(false);
    await night.accept();
    expect(await night.job({ isManifestEnough: true }), at).toMatchObject({ asked: [], exit: exit.done });
    await night.accept("fills", null);
  }
});

it("is taken back, and then the next job fetches the table", async () => {
  await using night = await Night.first();
  await night.accept();
  const { table } = await night.accept("fills", null);
  expect(table.accepted).toBe(undefined);
  const next = await night.job({ isManifestEnough: true });
  expect(next.exit).toBe(exit.incomplete);
  expect(next.changed).toBe(true);
});

it("is refused of a table that is proven, is not archived or not accepted, and beside rows that are not committed", async () => {
  await using night = await Night.first();
  await expect(night.accept("orders")).rejects.toMatchObject({ code: "invalid_argument", exit: exit.usage });
  await expect(night.accept("bars")).rejects.toMatchObject({ code: "table_unknown", exit: exit.usage });
  await expect(night.accept("fills", null)).rejects.toMatchObject({ code: "invalid_argument" });
  night.source.storageVersion = "2";
  await night.tables.archiveUntil(night.source, "segment-journalled", 1);
  await expect(night.accept()).rejects.toMatchObject({ code: "locked", exit: exit.locked });
});

it("counts for the attempt that it was said of alone, and as one line: verify and readers refuse the rest", async () => {
  await using night = await Night.first();
  const { table, manifest } = await night.accept();
  const { archive } = night.tables;
  const { former: _, ...committed } = manifest;
  const write = async (accepted: object) => {
    const tables = {
      ...committed.tables,
      fills: { ...table, accepted: { ...table.accepted!, ...accepted } },
    };
    const text = manifestText({ ...committed, tables } as Manifest);
    await writeFile(archive.layout.manifestFile(run), text);
  };
  await write({ attemptAt: "2022-01-01T00:00:00.000000000Z" });
  expect(acceptanceOf((await archive.manifest(run))!.tables.fills)).toBe(null);
  expect((await verifyRun(archive, run, { duckdb: sharedDuckDB })).damaged).toBe(true);
  expect((await night.job()).exit).toBe(exit.incomplete);
  for (const hostile of ["two\nlines", "\u001b[31mred", "", " ", "x".repeat(501)]) {
    await write({ reason: hostile });
    await expect(archive.manifest(run), hostile).rejects.toMatchObject({ code: "archive_damaged" });
  }
});
