// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { againstReportSchema } from "../../src/analytics/against/against-report.ts";
import { reconcileReportSchema } from "../../src/analytics/reconcile/reconcile-report.ts";
import { parseBookFault } from "../../src/simulator/books/book-fault.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { archived } from "../fixtures/archive/reconciled-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let dir: string;
let archive: string;
let clean: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-reconcile-cli-"));
  const bookFaults = [parseBookFault("shift-fee@*")];
  await using world = await openSimulator({ runs: 1, failed: 0, rows: 5_000, cacheDir: dir, bookFaults });
  archive = (await archived(dir, world, (await world.runs("alpha-1"))![0]!)).dir;
  await using twin = await openSimulator({ runs: 1, failed: 0, rows: 5_000, cacheDir: dir });
  clean = (await archived(dir, twin, (await twin.runs("alpha-1"))![0]!)).dir;
});
afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

const run = "alpha-1/2022-01-01-001";

test("a break exits with 4, and names the rows to look at", async () => {
  const { status, stdout } = await runInside(["reconcile", run, "--archive", archive]);
  expect(status).toBe(4);
  expect(stdout).toMatch(/2 {2}BREAKS {7}equity from the rows/);
  expect(stdout).toMatch(/look at \(table seq\): (?:fills \d+, )+equity \d+/);
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(120);
});

test("a difference within the tolerance exits with 0", async () => {
  const { status } = await runInside(["reconcile", run, "--archive", archive, "--tolerance", "0.01"]);
  expect(status).toBe(0);
});

test("--json is what the schema says", async () => {
  const { stdout } = await runInside(["reconcile", run, "--archive", archive, "--json"]);
  expect(reconcileReportSchema.parse(JSON.parse(stdout)).runs[0]!.verdict).toBe("BREAKS");
});

test.each([
  [[run, "--tolerance", "-1"], /tolerance/],
  [[run, "--accounting", "spt"], /accounting/],
  [[run, "--match", "time"], /--match has no effect without --against/],
  [[run, "--against", run, "--fill-order", "key"], /--fill-order has no effect with --against/],
  [[run, run, "--against", run], /one run, not 2/],
  [[run, "--against", run, "--within", "5"], /unit/],
  [[run, "--against", run, "--session", "bars"], /ends of days/],
  [[run, "--against", "alpha-1/2022-01-01-002"], /Did you mean alpha-1\/2022-01-01-001/],
  [["alpha-1/2022-01-01-002"], /Did you mean alpha-1\/2022-01-01-001/],
])("%j is a mistake of usage", async (args, said) => {
  const { status, stderr } = await runInside(["reconcile", ...args, "--archive", archive]);
  expect(status).toBe(2);
  expect(stderr).toMatch(said);
});

test("--against tells what differs from the twin, with exit status 4", async () => {
  const { status, stdout } = await runInside(
    ["reconcile", run, "--archive", archive, "--against", run, "--against-archive", clean],
    { columns: 100 },
  );
  expect(status).toBe(4);
  expect(stdout).toMatch(/DIFFERS: the two differ/);
  expect(stdout).toMatch(/0 only here, 0 only there, 1 matched and further apart than allowed/);
  expect(stdout).toMatch(/fee \(USD\) +1 of \d+ +/);
});

test("--against a run itself is the same, with exit status 0; --json is what the schema says", async () => {
  const { status, stdout } = await runInside([
    "reconcile",
    run,
    "--archive",
    clean,
    "--against",
    run,
    "--json",
  ]);
  expect(status).toBe(0);
  expect(againstReportSchema.parse(JSON.parse(stdout)).against.verdict).toBe("SAME");
});
