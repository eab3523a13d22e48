// @module-tag slow
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { serve } from "../../src/serve/server.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { KillWorld } from "../fixtures/command/kill-driver.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

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
  expect(stderr).toContain("widening fills.price to DECIMAL(38,21) in the whole archive");
  expect(JSON.parse(stdout)).toMatchObject({ runs: [{ runId: second!.runId, state: "COMPLETE" }] });
  const made = await openArchive(dir);
  expect(made.exactTypes("fills").price).toBe("DECIMAL(38,21)");
  expect(made.formerTypes("fills")).toBeUndefined();
  for (const entry of [first!, second!]) {
    const report = await verifyRun(made, entry, { deep: true, duckdb: sharedDuckDB });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect((await made.manifest(entry))!.tables.fills!.proven!.exactTypes.price).toBe("DECIMAL(38,21)");
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
  expect((await openArchive(dir)).exactTypes("fills").price).toBe("DECIMAL(38,21)");

  const never = await world.archiveFolder();
  const narrow = { status: 4, fills: { state: "INCOMPLETE", error: { code: "value_out_of_range" } } };
  expect(await archivedInto(never, "--widen", "never")).toMatchObject(narrow);
  const refused = await archivedInto(never);
  expect(refused).toMatchObject(narrow);
  expect(refused.fills.error.hint).toContain("--widen auto");
  expect((await openArchive(never)).exactTypes("fills").price).toBe("DECIMAL(18,9)");
  expect(await archivedInto(never, "--widen", "auto")).toMatchObject({ status: 0 });
});

/** A gateway of one run, whose first three fills have these fees. */
const feesOf = (fees: readonly string[]) => {
  const rows = rowsAt(
    worldRun,
    "fills",
    fees.map((_, i) => 1_640_995_200_000_000_000n + BigInt(i)),
  );
  const source = new ArraySource(
    worldRun,
    new Map([
      [
        "fills",
        rows.map((row, i) => ({ ...row, line: row.line.replace(/"fee":"[^"]*"/, `"fee":"${fees[i]}"`) })),
      ],
    ]),
  );
  return {
    source,
    asked: () => source.asked.filter(({ table, limit }) => table === "fills" && limit !== 1).length,
  };
};

const archiveFees = async (dir: string, source: ArraySource, ...args: string[]) => {
  const served = await serve({ source, host: "127.0.0.1", port: 0 });
  await using _ended = { [Symbol.asyncDispose]: () => served.close() };
  const name = `${worldRun.instanceId}/${worldRun.runId}`;
  const named = ["archive", name, "--gateway", served.url, "--archive", dir, "--tables", "fills", "--json"];
  const { status, stdout, stderr } = await runInside([...named, ...args]);
  return { status, stderr, fills: JSON.parse(stdout).runs[0].tables.fills };
};

// the first value had left no room for the second, and each column that was widened had all rows fetched again
test.each([
  ["17 decimals, then 19", ["0.05234567890123456", "0.0021681799239403935"]],
  ["19 decimals, then 17", ["0.0021681799239403935", "0.05234567890123456"]],
  ["30 digits before the point, then 8 after it", ["123456789012345678901234567890", "0.12345678"]],
  ["31 decimals, then 7 digits before the point", [`0.${"1".repeat(31)}`, "1234567"]],
])("values of %s are archived in one pass over the rows", async (_, fees) => {
  const { source, asked } = feesOf(["1", ...fees]);
  const dir = await world.archiveFolder();
  const sound = feesOf(["1", "2", "3"]);
  await archiveFees(await world.archiveFolder(), sound.source);
  const { status, fills } = await archiveFees(dir, source);
  expect({ status, state: fills.state }).toEqual({ status: 0, state: "COMPLETE" });
  expect(asked()).toBe(sound.asked());
});

test("rows that a column is too narrow for stay: once it is widened none is fetched again", async () => {
  const { source, asked } = feesOf(["1", "2", "0.0021681799239403935"]);
  const dir = await world.archiveFolder();
  const narrow = await archiveFees(dir, source, "--widen", "never");
  expect(narrow).toMatchObject({ status: 4, fills: { state: "INCOMPLETE" } });
  expect((await runInside(["verify", "--deep", "--archive", dir])).stderr).not.toContain("damaged");
  const before = asked();
  const flag = /--widen (\S+=\d+,\d+)/.exec(narrow.fills.error.hint)![1]!;
  expect(await runInside(["maintain", "rebuild", "--widen", flag, "--archive", dir])).toMatchObject({
    status: 0,
  });
  expect(await archiveFees(dir, source)).toMatchObject({ status: 0, fills: { state: "COMPLETE", rows: 3 } });
  expect(asked()).toBe(before);
});

test("values that no type holds together are both named", async () => {
  const fees = [`0.${"1".repeat(31)}`, "12345678"];
  const { status, fills } = await archiveFees(await world.archiveFolder(), feesOf(["1", ...fees]).source);
  expect({ status, state: fills.state }).toEqual({ status: 4, state: "INCOMPLETE" });
  for (const fee of fees) expect(fills.error.message).toContain(fee);
  expect(fills.error.message).toContain("no column type holds 8 digits before the point and 31 after it");
});
