import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openQuery } from "../../src/analytics/query/query.ts";
import { openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { archiveWorld, smallWorld, verifyAll, worldRun } from "../fixtures/archive/archived-world.ts";
import { globbedTypes } from "../fixtures/archive/rebuild-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type Finished, start } from "../fixtures/command/command-process.ts";
import { filesBelow, rebuildSteps } from "../fixtures/command/kill-driver.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const tables = ["fills", "orders", "bars"] as const;
const other = { ...worldRun, runId: "2022-02-02" };
const runs = [worldRun, other];

let folder: string;
let copies = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-kill-rebuild-"));
  for (const run of runs)
    await archiveWorld(join(folder, "pristine"), new ArraySource(run, smallWorld(25, run)), { run, tables });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function copy(): Promise<string> {
  const dir = join(folder, `archive-${++copies}`);
  await cp(join(folder, "pristine"), dir, { recursive: true });
  return dir;
}

const command = (dir: string, args: readonly string[]) => [
  "maintain",
  "rebuild",
  ...args,
  "--archive",
  dir,
  "--json",
];

async function killedAt(step: string, dir: string, args: readonly string[]): Promise<void> {
  const running = start(command(dir, args), { RUNVAULT_KILL_AT: step });
  const { stderr } = await running.finished;
  expect({ step, signal: running.child.signalCode, stderr }).toMatchObject({ signal: "SIGKILL" });
}

/** The command until it ends by itself, inside this process: nobody kills it, and it starts faster. */
async function rebuilt(dir: string, args: readonly string[]): Promise<Finished> {
  const finished = await runInside(command(dir, args));
  expect(finished).toMatchObject({ status: 0 });
  return finished;
}

/** No file is damaged, whatever the state of links and of what no manifest names. */
async function expectSound(dir: string): Promise<void> {
  for (const report of await verifyAll(await openArchive(dir)))
    expect(report.checks.filter(({ level }) => level === "damaged")).toEqual([]);
}

/** The same rows, and nothing left over of the work. */
async function expectDone(dir: string): Promise<void> {
  const archive = await openArchive(dir);
  for (const run of runs) {
    const report = await verifyRun(archive, run, { deep: true });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  }
  for (const left of ["pending", "staging", "jobs"]) expect(await filesBelow(join(dir, left))).toEqual([]);
  expect((await filesBelow(join(dir, "runs"))).filter((file) => file.endsWith(".part"))).toEqual([]);
  expect((await readdir(dir)).filter((name) => name.endsWith(".part"))).toEqual([]);
}

interface Report {
  readonly runs: readonly {
    readonly runId: string;
    readonly changed: boolean;
    readonly buckets: number;
    readonly resumedBuckets: number;
  }[];
}

/** Kills at each step in turn, and what the command says that then ends by itself. */
async function killedAtEach(dir: string, args: readonly string[], steps: readonly string[]): Promise<Report> {
  for (const step of steps) {
    await killedAt(step, dir, args);
    await expectSound(dir);
  }
  return JSON.parse((await rebuilt(dir, args)).stdout) as Report;
}

describe("rebuild killed at any step and started again converts no journalled bucket twice and ends in an equal archive", () => {
  /** Steps, with the buckets that the last start of the command still has to convert: three tables a run. */
  const chains: readonly (readonly [readonly string[], readonly [number, number]])[] = [
    [
      ["rebuild-recorded", "converted", "parquet-renamed", "parquet-journalled", "commit-moved-one:2"],
      [0, 3],
    ],
    [
      ["parquet-journalled:4", "commit-moved", "manifest-written", "manifest-renamed"],
      [0, 0],
    ],
    [
      ["links-refreshed", "pending-removed"],
      [0, 0],
    ],
  ];
  it.each(chains)("at %j", async (steps, converted) => {
    const dir = await copy();
    const { runs: told } = await killedAtEach(dir, [], steps);
    expect(told.map(({ buckets }) => buckets)).toEqual(converted);
    await expectDone(dir);
    const { equal, runs: found } = await diffArchives(
      await openArchive(join(folder, "pristine")),
      await openArchive(dir),
    );
    expect(equal, JSON.stringify(found)).toBe(true);
    // every run's Parquet is of the new generation, and only once
    const manifests = await (await openArchive(dir)).manifests();
    expect(manifests.map(({ generation }) => generation)).toEqual([2, 2]);
  });
});

describe("a column widened by a job that is killed at any step and started again", () => {
  const args = ["--widen", "fills.price", "--widen", "bars.close=24,12"];
  const chains = [
    ["widening-written", "widening-recorded", "converted", "commit-moved", "tables-removed"],
    ["pending-removed", "tables-removed:2", "tables-replaced", "widening-finished"],
  ];

  it("is killed at every step that rebuild alone has", () => {
    const kills = chains.flat().map((at) => at.split(":")[0]);
    for (const step of rebuildSteps.filter((name) => name !== "rebuild-recorded"))
      expect(kills).toContain(step);
  });

  it.each(chains.map((steps) => [steps]))(
    "at %j is one type for every reader, and ends in the same rows",
    async (steps) => {
      const dir = await copy();
      const sql =
        "SELECT run_id, count(*), sum(price), max(price) FROM fills GROUP BY run_id ORDER BY run_id";
      const before = await queried(dir, sql);
      for (const step of steps) {
        await killedAt(step, dir, args);
        await expectSound(dir);
        expect(await queried(dir, sql)).toEqual(before);
        const types = await globbedTypes(dir, join(dir, "tables", "fills"), "price");
        expect(new Set(types.values()).size).toBeLessThan(2);
        // between two renames there is no folder at all, which a glob is told; never a part of the runs
        expect([0, runs.length]).toContain(types.size);
        expect(types.size === 0).toBe(step.startsWith("tables-removed") && !(await isThere(dir, "fills")));
      }
      await rebuilt(dir, args);
      await expectDone(dir);
      const archive = await openArchive(dir);
      expect(archive.exactTypes("fills").price).toBe("DECIMAL(38,18)");
      expect(archive.exactTypes("bars").close).toBe("DECIMAL(24,12)");
      for (const name of tables) expect(archive.formerTypes(name)).toBeUndefined();
      for (const { tables: held } of await archive.manifests()) {
        for (const name of tables) expect(held[name]!.proven!.exactTypes).toEqual(archive.exactTypes(name));
      }
      expect(new Set((await globbedTypes(dir, join(dir, "tables", "fills"), "price")).values())).toEqual(
        new Set(["DECIMAL(38,18)"]),
      );
      const { runs: compared } = await diffArchives(await openArchive(join(folder, "pristine")), archive);
      for (const { tables: found } of compared) {
        for (const table of found) {
          expect(table.rowHash.a).toBe(table.rowHash.b);
          expect(table.firstDifference).toBeNull();
        }
      }
    },
  );
});

async function isThere(dir: string, table: string): Promise<boolean> {
  return (await readdir(join(dir, "tables"))).includes(table);
}

/** Numbers as they compare, whatever their scale: 1.5 and 1.500 are the same. */
async function queried(dir: string, sql: string): Promise<unknown[][]> {
  await using query = await openQuery(await openArchive(dir));
  const rows: unknown[][] = [];
  for await (const batch of (await query.run(sql)).batches()) rows.push(...(batch as unknown[][]));
  return rows.map((row) => row.map((cell) => String(cell).replace(/(\.\d*?)0+$/, "$1")));
}
