import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { run, start } from "../fixtures/command/command-process.ts";
import { daysAgo, JobWorld } from "../fixtures/pipeline/job-world.ts";

/** Steps behind which every row that came is safe. */
const safe = new Set([
  "planned-job",
  "pending-removed",
  "verified-job",
  "export-written",
  "exported-job",
  "told-job",
]);

/** Before its first run, within one, and after the last: the fortnight has all steps. */
const kills = ["record-begun", "segment-journalled", "exported-job"];

test("an execution that is killed at any step is gone on with by the next, and nothing is fetched twice", async () => {
  const died: string[] = [];
  for (const step of kills) {
    await using world = await JobWorld.open(1, 2);
    const file = await world.write({ after: { exports: [{ tables: ["fills"], out: "fills.csv" }] } });
    const killed = await run(["run", file], { RUNVAULT_KILL_AT: step });
    if (killed.status === null) died.push(step);
    const next = await runInside(["run", file]);
    expect([step, next.status]).toEqual([step, 0]);
    expect(next.stderr).not.toContain("runvault: ");
    expect((await readFile(join(world.folder, "fills.csv"), "utf8")).trimEnd().split("\n")).toHaveLength(7);
    // all three rows of a run are sent once, whatever is asked around them
    const whole = world.log.filter(({ path, rows }) => path.endsWith("/fills") && rows === 3);
    if (safe.has(step))
      expect([step, whole.map(({ run: id }) => id).toSorted()]).toEqual([step, ["r1", "r2"]]);
    const { status, stdout } = await runInside(["jobs", "--archive", world.dir, "--json"]);
    expect([step, status]).toEqual([step, 0]);
    if (killed.status === null) expect(stdout).toContain('"died"');
  }
  expect(died).toEqual(kills);
});

test("the same job twice at once: the second ends with 6 and names the first's process; SIGTERM ends that in order", async () => {
  await using world = await JobWorld.open(1, 3);
  const file = await world.write();
  // in service only once the second has ended
  world.failing = new RunvaultError("server_error", "maintenance");
  const first = start(["run", file]);
  await first.seen("waiting for the gateway");
  const second = await runInside(["run", file]);
  expect(second.status).toBe(6);
  expect(second.stderr).toContain(`pid ${first.child.pid}`);
  expect(second.stderr).toContain("running since");
  first.child.kill("SIGTERM");
  const { status, stdout, stderr } = await first.finished;
  // one line says that the gateway is down; those of single attempts are for -v
  expect(stderr).not.toContain("waiting before the next attempt");
  expect(status).toBe(143);
  expect(stdout).toMatch(/stopped by SIGTERM while the gateway was unavailable: .* maintenance \(exit 143\)/);
  world.failing = null;
  expect((await runInside(["run", file])).status).toBe(0);
});

test("several files are executed one after another; one that is wrong is told, and keeps no other from it", async () => {
  await using world = await JobWorld.open(2, 1);
  const good = await world.write({ runs: { instances: ["i1"] } }, "good");
  const bad = await world.write({ runs: { instances: ["i2"] }, nonsense: 1 }, "bad");
  const { status, stdout, stderr } = await runInside(["run", bad, good]);
  expect(status).toBe(2);
  expect(stderr).toContain("there is no key nonsense");
  expect(stdout).toMatch(/i1\/r1 {2}COMPLETE/);
  const dry = await runInside(["run", good, "--dry-run", "--set", "runs.instances=[i2]"]);
  expect(dry).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("new        i2/r1  3 rows") as string,
  });
  expect(await readdir(join(world.dir, "jobs"))).toEqual(["good"]);
});

test("the deadline ends it with 8, and the next execution does the rest", async () => {
  await using world = await JobWorld.open(1, 2);
  world.runs.sources[0]!.entry = { ...world.runs.sources[0]!.entry, ended: daysAgo(2) };
  const file = await world.write();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.holding = promise;
  const { status, stdout } = await runInside(["run", file, "--deadline", "2s"]);
  resolve();
  expect([status, stdout]).toEqual([
    8,
    expect.stringContaining("the deadline was reached after 2 s") as string,
  ]);
  world.holding = null;
  expect((await runInside(["run", file])).status).toBe(0);
});
