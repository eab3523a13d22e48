// @module-tag slow
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { KillWorld } from "../fixtures/command/kill-driver.ts";

let world: KillWorld;
beforeAll(async () => {
  world = await KillWorld.create({ rows: 600, runs: 2 });
});
afterAll(() => world[Symbol.asyncDispose]());

test("archive --widen auto widens the column that a value does not fit, in all runs, and ends COMPLETE", async () => {
  const dir = await world.archiveFolder();
  const [first, second] = (await world.simulator.runs(world.run.instanceId))!;
  const archive = async (url: string, runId: string, ...args: string[]) => {
    const name = `${world.run.instanceId}/${runId}`;
    const named = ["archive", name, "--gateway", url, "--archive", dir, "--tables", "fills,orders", "--json"];
    return await runInside([...named, ...args]);
  };
  const sound = await world.serve();
  expect((await archive(sound.url, first!.runId)).status).toBe(0);
  const { url } = await world.serve({ faults: ["decimals@fills:12"] });
  expect((await archive(url, second!.runId)).status).toBe(4);
  const { status, stdout, stderr } = await archive(url, second!.runId, "--widen", "auto");
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(stderr).toContain("widening fills.price to DECIMAL(38,18) in the whole archive");
  expect(JSON.parse(stdout)).toMatchObject({ runs: [{ runId: second!.runId, state: "COMPLETE" }] });
  const made = await openArchive(dir);
  expect(made.exactTypes("fills").price).toBe("DECIMAL(38,18)");
  expect(made.formerTypes("fills")).toBeUndefined();
  for (const entry of [first!, second!]) {
    const report = await verifyRun(made, entry, { deep: true, duckdb: sharedDuckDB });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect((await made.manifest(entry))!.tables.fills!.proven!.exactTypes.price).toBe("DECIMAL(38,18)");
  }
  const lines = await parquetLines(made, second!, "fills");
  expect(lines.some((line) => line.includes('"price":"1.123456789012"'))).toBe(true);
  expect(lines).toEqual(await segmentLines(made, second!, "fills"));
});

/** Archives the runs named, of which the first has a price that DECIMAL(18,9) does not hold. */
async function archivedInto(dir: string, ...args: string[]) {
  const [first] = (await world.simulator.runs(world.run.instanceId))!;
  const { url } = await world.serve({ faults: ["decimals@fills:12"] });
  const name = `${world.run.instanceId}/${first!.runId}`;
  const named = ["archive", name, "--gateway", url, "--archive", dir, "--tables", "fills,orders", "--json"];
  const { status, stdout } = await runInside([...named, ...args]);
  return { status, fills: JSON.parse(stdout).runs[0].tables.fills };
}

test("a new archive is widened without being told to, but not one that is there, and none with --widen never", async () => {
  const dir = await world.archiveFolder();
  expect(await archivedInto(dir)).toMatchObject({ status: 0, fills: { state: "COMPLETE" } });
  expect((await openArchive(dir)).exactTypes("fills").price).toBe("DECIMAL(38,18)");

  const never = await world.archiveFolder();
  const narrow = { status: 4, fills: { state: "INCOMPLETE", error: { code: "value_out_of_range" } } };
  expect(await archivedInto(never, "--widen", "never")).toMatchObject(narrow);
  const refused = await archivedInto(never);
  expect(refused).toMatchObject(narrow);
  expect(refused.fills.error.hint).toContain("--widen auto");
  expect((await openArchive(never)).exactTypes("fills").price).toBe("DECIMAL(18,9)");
  expect(await archivedInto(never, "--widen", "auto")).toMatchObject({ status: 0 });
});
