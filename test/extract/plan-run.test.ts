// @module-tag slow
import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { knownSource } from "../../src/archive/sources.ts";
import { planRun, type RunPlan } from "../../src/extract/plan/plan-run.ts";
import { defaultSettings } from "../../src/extract/run/archive-run.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import type { StorageFacts } from "../../src/model/source.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { someOf } from "../fixtures/trials/cases.ts";

function planned(tables: TableWorld, source: ArraySource, acceptShrink = false): Promise<RunPlan> {
  return planRun({
    source,
    archive: tables.archive,
    folder: tables.archive.dir,
    run,
    tables: [...source.tables.keys()],
    settings: { ...defaultSettings, sliceRows: 20, acceptShrink },
    clock: () => at(1_000_000),
    retry: quickRetry(),
    signal: new AbortController().signal,
  });
}

/** Every file of the run's, and what is in the archive below. */
async function filesOf(tables: TableWorld): Promise<string[]> {
  const { layout } = tables.archive;
  const folders = [layout.pendingDir(run), layout.dataDir(run)];
  const names = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])));
  return names.flat();
}

/** What a job did of what was planned: rows in segments that were not there before it, windows asked for. */
async function done(tables: TableWorld, source: ArraySource, before: readonly string[], asked: number) {
  const known = new Set(before);
  const manifest = (await tables.archive.manifest(run))!;
  const names = [...source.tables.keys()];
  return names.map((table) => {
    const fresh = manifest.tables[table]!.proven!.segments.filter(({ file }) => !known.has(file));
    // probes of what lies outside of the table are not planned
    const windows = source.asked
      .slice(asked)
      .filter((request) => request.table === table && request.limit !== 1);
    return {
      table,
      rows: fresh.reduce((sum, { rows }) => sum + rows, 0),
      slices: new Set(windows.map(({ to }) => to)).size,
    };
  });
}

interface Kind {
  readonly manners: Manners;
  /** The steps at which a job is killed, as `STEP:N`. */
  readonly steps: readonly string[];
  /** Rows that are there when the run is archived for the first time, undisturbed; none where it was not. */
  readonly before?: (rows: ReturnType<typeof world>) => ReturnType<typeof world>;
}

const all = () => world({ fills: hours(90), orders: hours(60), metrics: [3] });
const without = (rows: ReturnType<typeof world>, table: TableName, from: number, count: number) => {
  const changed = new Map(rows);
  changed.set(table, rows.get(table)!.toSpliced(from, count));
  return changed;
};

const kinds: Record<string, Kind> = {
  "a finished run": {
    manners: {},
    steps: [
      ...["planned:1", "segment-written:2", "segment-renamed:4", "segment-journalled:1"],
      ...["segment-journalled:5", "converted:1", "parquet-renamed:2", "parquet-journalled:1", "certified:1"],
      ...["commit-moved-one:3", "commit-moved:1", "manifest-written:1", "manifest-renamed:1"],
      "links-refreshed:1",
    ],
  },
  "a run that goes on": { manners: { final: false }, steps: ["segment-journalled:5", "manifest-renamed:1"] },
  "a run without storage facts": {
    manners: { literal: true },
    steps: ["survey-journalled:1", "survey-journalled:3", "segment-journalled:5", "commit-moved-one:3"],
  },
  "a gateway whose facts ignore bounds": {
    manners: { factsIgnore: "from" },
    steps: ["segment-journalled:5", "commit-moved:1"],
  },
  "late rows": {
    manners: { final: false },
    steps: ["segments-dropped:1", "segments-dropped:2", "segment-journalled:1", "parquet-journalled:1"],
    before: (rows) => without(without(rows, "fills", 30, 2), "orders", 40, 20),
  },
};

describe("a dry run after a kill says what the next job then does", () => {
  it.each(Object.entries(kinds))("of %s", async (_, { manners, steps, before }) => {
    for (const killed of someOf(steps, 3)) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, all(), manners);
      if (before !== undefined) {
        source.tables = before(all());
        await tables.archiveRun(source);
        source.tables = all();
      }
      const [step, times] = killed.split(":") as [string, string];
      await tables.archiveUntil(source, step, Number(times));
      const left = await filesOf(tables);
      const plan = await planned(tables, source);
      expect(await filesOf(tables), "a dry run changes nothing").toEqual(left);
      const asked = source.asked.length;
      const { changed } = await tables.archiveRun(source);
      expect({ killed, isDone: plan.upToDate }).toEqual({ killed, isDone: !changed });
      if (plan.upToDate) {
        expect(source.asked.length).toBe(asked);
        continue;
      }
      const known = plan.tables.filter(({ rows }) => rows !== null);
      // only where nothing was surveyed yet it cannot know
      if (!manners.literal) expect(known).toHaveLength(source.tables.size);
      const wanted = (await done(tables, source, left, asked)).filter(({ table }) =>
        known.some((other) => other.table === table),
      );
      expect({
        killed,
        tables: known.map(({ table, rows, slices }) => ({ table, rows, slices })),
      }).toEqual({ killed, tables: wanted });
    }
  });
});

describe("a dry run", () => {
  it("says of a table that lost rows that it will be left as it is, and with which error", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, all());
    await tables.archiveRun(source);
    source.storageVersion = "2";
    source.tables = without(all(), "fills", 20, 1);
    const [fills, orders] = (await planned(tables, source)).tables;
    expect(fills).toMatchObject({ table: "fills", rows: 0, error: { code: "shrunk" } });
    expect(orders).toMatchObject({ table: "orders", rows: 0, error: null });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.error).toMatchObject({
      code: "shrunk",
      message: fills!.error!.message,
    });
    expect((await planned(tables, source, true)).tables[0]).toMatchObject({ table: "fills", error: null });
  });

  it("says of another gateway's run under the same id what its job would say, and remembers nothing", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(new ArraySource(run, all()));
    const elsewhere = (rows: ReturnType<typeof world>) =>
      Object.assign(new ArraySource(run, rows), { label: "http://elsewhere/api/v1", storageVersion: "2" });
    const other = elsewhere(world({ fills: hours(3, 200), orders: hours(3, 200) }));
    await expect(planned(tables, other)).rejects.toMatchObject({ code: "history_identity_conflict" });
    await planned(tables, elsewhere(all()));
    await expect(planned(tables, other)).rejects.toMatchObject({ code: "history_identity_conflict" });
    expect((await knownSource(tables.archive, other.label)).addresses).toEqual([other.label]);
  });
});

describe("facts of more rows than any disk has room for", () => {
  class Boasting extends ArraySource {
    rows64 = 2n ** 64n - 1n;
    override async facts(...args: Parameters<ArraySource["facts"]>): Promise<StorageFacts | null> {
      const facts = new Map(await super.facts(...args));
      const own = facts.get("fills");
      if (own !== undefined && own.rows > 0n) facts.set("fills", { ...own, rows: this.rows64 });
      return facts;
    }
  }

  it.each([
    ["2^64 - 1 rows", 2n ** 64n - 1n],
    ["10^15 rows", 10n ** 15n],
  ])("end a job and a dry run within a second: %s", async (_, rows64) => {
    await using tables = await TableWorld.create();
    const source = new Boasting(run, world({ fills: [0, 5_000_000], orders: [1] }));
    source.rows64 = rows64;
    // the first job of a process opens DuckDB, which takes its own time
    await tables.archiveRun(new ArraySource(run, world({ orders: [1] })));
    source.storageVersion = "2";
    const cpu = process.cpuUsage();
    const job = tables.archiveRun(source);
    await expect(job).rejects.toThrow(RunvaultError);
    await expect(job).rejects.toMatchObject({ code: "storage_full" });
    await expect(job).rejects.toThrow(
      /the rows need about [\d.]+ (PB|EB|ZB), but the disk has [\d.]+ [GT]B free/,
    );
    const plan = await planned(tables, source);
    expect(plan.tables[0]).toMatchObject({ table: "fills", slices: null, error: null });
    expect(plan.tables[0]!.diskBytes).toBeGreaterThan(plan.freeBytes);
    // of the processor, so that a busy machine is no failure
    const { user, system } = process.cpuUsage(cpu);
    expect((user + system) / 1e6).toBeLessThan(2);
    expect(source.asked.filter(({ table }) => table === "fills")).toEqual([]);
  });
});
