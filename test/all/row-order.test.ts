import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { lost, recordStatements } from "../fixtures/analytics/recorded-statements.ts";
import { SplitWorld } from "../fixtures/archive/split-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let world: SplitWorld;
beforeAll(async () => {
  world = await SplitWorld.create();
});
afterAll(() => world[Symbol.asyncDispose]());

// a join or a group that someone adds below a reader of sorted rows; reconcile is in test/analytics/row-order.test.ts
test.each([
  ["reconcile", (w: SplitWorld) => [w.run, "--against", w.run, "--archive", w.archive.dir]],
  ["metrics", (w: SplitWorld) => [w.run, "--archive", w.archive.dir]],
  ["report", (w: SplitWorld) => [w.run, "--archive", w.archive.dir, "--out", join(w.folder, "report.html")]],
  [
    "export",
    (w: SplitWorld) => ["--with-analytics", "--archive", w.archive.dir, "--out", join(w.folder, "a.duckdb")],
  ],
  [
    "export",
    (w: SplitWorld) => [
      "--all-tables",
      "--archive",
      w.archive.dir,
      "--out",
      join(w.folder, "csv"),
      "--format",
      "csv",
    ],
  ],
  ["export", (w: SplitWorld) => ["bars", "--archive", w.archive.dir, "--out", join(w.folder, "bars.arrow")]],
  ["maintain", (w: SplitWorld) => ["diff", w.archive.dir, w.archive.dir]],
])("no plan of %s loses an order that its reader needs", async (command, args) => {
  using recorded = recordStatements();
  expect(await runInside([command, ...args(world)])).toMatchObject({ status: 0 });
  expect(recorded.statements().length).toBeGreaterThan(0);
  expect(lost(recorded.statements())).toEqual([]);
});
