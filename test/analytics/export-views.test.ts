// @module-tag slow
import { mkdtemp, rm, stat, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openQuery } from "../../src/analytics/query/query.ts";
import { viewColumns } from "../../src/analytics/query/view-columns.ts";
import type { Archive } from "../../src/archive/archive.ts";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { literal } from "../../src/duckdb/sql.ts";
import { startWidening } from "../../src/extract/rebuild/widen.ts";
import { extraTypes } from "../../src/model/profile/extra-column.ts";
import type { RunRef } from "../../src/model/source.ts";
import { buildExtremeArchive, linkTables, oddRuns } from "../fixtures/archive/extreme-archive.ts";
import { fillsOf, RebuildWorld, second, third } from "../fixtures/archive/rebuild-world.ts";
import { at, hours, run } from "../fixtures/archive/table-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-views-"));
  file = join(folder, "views.duckdb");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const exporting = (dir: string, ...more: string[]) =>
  runInside(["export", "--views", "--archive", dir, "--out", file, ...more]);

/** What the file answers, as text: DuckDB writes every value of a row exactly. */
async function inFile(sql: string): Promise<string[]> {
  const { connection, close } = await openDuckDB({ threads: 1, utc: true });
  try {
    await connection.run(`ATTACH ${literal(file)} AS f (READ_ONLY)`);
    await connection.run("USE f");
    return (await connection.runAndReadAll(sql)).getRows().map(String);
  } finally {
    close();
  }
}

async function inQuery(archive: Archive, sql: string): Promise<string[]> {
  await using query = await openQuery(archive, { threads: 1 });
  const rows: string[] = [];
  for await (const batch of (await query.run(sql)).batches()) rows.push(...batch.map(String));
  return rows;
}

const names = [...viewColumns.keys()].filter(
  (name) => !["round_trips", "matches", "positions"].includes(name),
);

describe("a database of views", () => {
  it("shows what a query does, with its types, wherever the archive is and whatever ids it has", async () => {
    const built = await buildExtremeArchive("it's [an] archive? *");
    try {
      await linkTables(built.archive);
      const done = await exporting(built.dir, "--all-tables");
      expect(done).toMatchObject({ status: 0, stderr: "" });
      for (const name of names) {
        const columns = viewColumns.get(name)!.map((column) => `"${column}"`);
        for (const sql of [
          `SELECT ${columns.map((column) => `hash(${column})`).join(", ")} FROM ${name} ORDER BY ALL`,
          `SELECT ${columns.map((column) => `typeof(${column})`).join(", ")} FROM ${name} LIMIT 1`,
          `SELECT instance_id, run_id FROM ${name} ORDER BY ALL`,
        ]) {
          expect(await inFile(sql), sql).toEqual(await inQuery(built.archive, sql));
        }
      }
      const ids = oddRuns.map(({ instanceId, runId }) => `${instanceId},${runId}`);
      expect(await inFile("SELECT DISTINCT instance_id, run_id FROM fills ORDER BY ALL")).toEqual(ids);
    } finally {
      await built.dispose();
    }
  });

  it("is small, and its report counts the rows that it shows", async () => {
    await using world = await worldOf([run, second]);
    const done = await exporting(world.archive.dir, "fills", "--json");
    expect(JSON.parse(done.stdout)).toMatchObject({ rows: 24 });
    expect((await stat(file)).size).toBeLessThan(100_000);
  });

  it("has the rows chosen alone", async () => {
    await using world = await worldOf([run, second]);
    const named = await exporting(
      world.archive.dir,
      "fills",
      "--run",
      `${second.instanceId}/${second.runId}`,
    );
    expect(named).toMatchObject({ status: 0, stderr: "" });
    expect(await inFile("SELECT DISTINCT run_id FROM fills")).toEqual([second.runId]);
    const chosen = ["--symbol", "A", "--from", `${at(3)}ns`, "--decimals", "double", "--force"];
    expect(await exporting(world.archive.dir, "fills", ...chosen)).toMatchObject({ status: 0, stderr: "" });
    const sql = `SELECT count(*), any_value(typeof(price)) FROM fills`;
    expect(await inFile(sql)).toEqual(["18,DOUBLE"]);
  });

  it.each([
    [["fills", "--format", "csv"], "--views writes a database, not csv"],
    [["fills", "--allow-incomplete"], "--views shows rows of tables/"],
  ])("is refused with %j", async (more, message) => {
    await using world = await worldOf([run]);
    const done = await exporting(world.archive.dir, ...more);
    expect(done).toMatchObject({ status: 2, stderr: expect.stringContaining(message) });
  });
});

describe("when the archive moves on, a database of views", () => {
  const counts = "SELECT run_id, count(*) FROM fills GROUP BY run_id ORDER BY run_id";

  it("goes on with what is committed, after the files of its time are gone", async () => {
    await using world = await worldOf([run]);
    await exporting(world.archive.dir, "fills");
    const { source } = world;
    source.tables = new Map([["fills", rowsAt(run, "fills", hours(20).map(at))]]);
    source.storageVersion = "2";
    await world.place.archiveRun(source);
    // long past the hour for which the files of before are kept
    await world.rebuild(run, null, at(2_000_000));
    expect(await inFile(counts)).toEqual([`${run.runId},20`]);
  });

  it("shows no run that it does not list, and loses one that is removed", async () => {
    await using world = await worldOf([run, second]);
    await exporting(world.archive.dir, "fills");
    await world.archiveFills(third);
    expect(await inFile(counts)).toEqual([`${run.runId},12`, `${second.runId},12`]);
    await world.command("rm", `${run.instanceId}/${run.runId}`);
    expect(await inFile(counts)).toEqual([`${second.runId},12`]);
    await exporting(world.archive.dir, "fills", "--force");
    expect(await inFile(counts)).toEqual([`${second.runId},12`, `${third.runId},12`]);
  });

  it("has the exact values of a column that was widened since", async () => {
    await using world = await worldOf([run, second]);
    await exporting(world.archive.dir, "fills");
    expect(await inFile("SELECT DISTINCT typeof(price) FROM fills")).toEqual(["DECIMAL(18,9)"]);
    await world.command("maintain", "rebuild", "--widen", "fills.price");
    const price = "12345678901234567890.000000000000000001";
    const source = new ArraySource(second, new Map([["fills", fillsOf(second, price)]]));
    source.storageVersion = "2";
    await world.place.archiveRun(source, { run: second });
    expect(await inFile("SELECT max(price) FROM fills")).toEqual([price]);
  });
});

describe("where tables/ is not what is committed, an export of views", () => {
  it.each([
    ["is being widened", { price: null }, [second]],
    ["is coming, and of none of the runs is there", extraTypes, []],
  ])("is refused while a column %s", async (_, types, rebuilt) => {
    await using world = await worldOf([run, second]);
    await startWidening(world.archive, { fills: types }, () => {});
    for (const one of rebuilt) await world.rebuild(one, null);
    const done = await exporting(world.archive.dir, "fills");
    expect(done).toMatchObject({ status: 4, stderr: expect.stringContaining("was not finished") });
  });

  it("is refused where a file is missing", async () => {
    await using world = await worldOf([run, second]);
    await unlink(join(world.archive.layout.tableDir("fills", run), "all.parquet"));
    const done = await exporting(world.archive.dir, "fills");
    expect(done.stderr).toContain("tables/fills has 12 rows, but 24 are committed");
    expect(done.stderr).toMatch(/rebuild .*--links/);
    expect(done.status).not.toBe(0);
  });
});

/** An archive with fills of these runs. */
async function worldOf(runs: readonly RunRef[]): Promise<RebuildWorld & { source: ArraySource }> {
  const world = await RebuildWorld.create();
  const [source] = await Promise.all(runs.map((one) => world.archiveFills(one)));
  return Object.assign(world, { source: source! });
}
