import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { exit, RunvaultError } from "../../../src/model/error.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("a run that the gateway forgets before anything of it was committed is gone, told once, and not mended", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write();
  const lost = world.runs.sources[1]!;
  lost.facts = () => Promise.reject(new RunvaultError("server_error", "broken"));
  const first = await world.execute(file);
  expect(first.exit).toBe(exit.gateway);
  // the second run is no longer named by anything
  world.runs.sources.splice(1, 1);
  const second = await world.execute(file);
  expect(second.plan).toEqual({ unchanged: 1, gone: 1 });
  expect(second.exit).toBe(exit.incomplete);
  expect(second.result.troubles.map(({ kind, mended }) => [kind, mended])).toContainEqual(["gone", null]);
  const third = await world.execute(file);
  expect([third.exit, third.plan]).toEqual([exit.done, { unchanged: 1 }]);
});

test("a run whose instance's list cannot be had is not gone", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write();
  world.runs.sources[1]!.manners = { refuses: () => new RunvaultError("server_error", "broken") };
  expect((await world.execute(file)).result.states).toMatchObject({ INCOMPLETE: 1 });
  world.runs.runs = () => Promise.reject(new RunvaultError("server_error", "broken"));
  const { exit: status, plan, result } = await world.execute(file);
  expect([status, plan.gone]).toEqual([exit.gateway, undefined]);
  expect(result.troubles.map(({ kind }) => kind)).not.toContain("gone");
  expect(result.troubles.some(({ kind, mended }) => kind === "table" && mended === null)).toBe(true);
});

test("two gateways with an instance of one name, begun at once in a new archive: one of them is refused", async () => {
  await using one = await JobWorld.open(1, 3);
  await using other = await JobWorld.open(1, 3);
  const file = await one.write({ parallel_runs: 1 });
  const second = await other.write({ parallel_runs: 1, archive: one.dir }, "second");
  const ended = await Promise.all([one.execute(file), sleep(0).then(() => other.execute(second))]);
  expect(ended.map(({ exit: status }) => status).toSorted()).toEqual([exit.done, exit.incomplete]);
  const archive = await one.archive();
  const sources = new Set<string>();
  for (const run of ["r1", "r2", "r3"]) {
    const manifest = await archive.manifest({ instanceId: "i1", runId: run });
    if (manifest !== null) sources.add(manifest.source);
  }
  expect(sources.size).toBe(1);
});

test("a deadline ends what waits for the first answer about a run", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write();
  const source = world.runs.sources[0]!;
  source.facts = () => new Promise(() => {});
  const startedMs = performance.now();
  const { exit: status } = await world.execute(file, { deadlineMs: 1_500 });
  expect(status).toBe(exit.deadline);
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test("INSTANCE/latest is found anew by each execution, recorded, and never asked for", async () => {
  await using world = await JobWorld.open(2, 2);
  const file = await world.write({ run: "i2/latest" });
  expect(await world.plan(file)).toMatchObject({ words: ["i2/r2 new"], notes: ["i2/latest is i2/r2"] });
  const first = await world.execute(file);
  expect(first).toMatchObject({ exit: exit.done, latest: "i2/r2", done: ["i2/r2 archived"] });
  expect(first.asked.join("\n")).not.toContain("latest");
  const [, , older, newer] = world.runs.sources;
  older!.entry = { ...older!.entry, started: newer!.entry.started! + 1n };
  expect(await world.execute(file)).toMatchObject({ latest: "i2/r1", done: ["i2/r1 archived"] });
});
