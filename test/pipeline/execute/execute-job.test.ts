// @module-tag slow
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { exit, RunvaultError } from "../../../src/model/error.ts";
import { wallClock } from "../../../src/model/time.ts";
import { lockJob } from "../../../src/pipeline/record/job-lock.ts";
import { day, daysAgo, JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("archives what is new, verifies and exports it, and the next night finds nothing to do", async () => {
  await using world = await JobWorld.open(2, 2);
  const file = await world.write({ after: { exports: [{ tables: ["fills"], out: "fills.parquet" }] } });
  const first = await world.execute(file);
  expect(first.exit).toBe(exit.done);
  expect(first.plan).toEqual({ new: 4 });
  expect(first.done.toSorted()).toEqual(["i1/r1", "i1/r2", "i2/r1", "i2/r2"].map((run) => `${run} archived`));
  expect(first.after.map(({ what, result, rows }) => [what, result, rows])).toEqual([
    ["verify", "done", null],
    ["export", "done", 12],
  ]);
  expect(first.result).toMatchObject({
    ...{ exit: 0, results: { archived: 4 }, states: { COMPLETE: 4 } },
    ...{ rows: 12, error: null, troubles: [] },
  });
  expect(first.result.grownBytes).toBeGreaterThan(0);
  for (const { steps, seconds } of first.runs) {
    expect(Object.keys(steps)).toEqual(["plan", "fetch", "prove", "commit"]);
    const sum = Object.values(steps).reduce((all, one) => all + one, 0);
    expect(sum).toBeGreaterThan(0);
    expect(sum).toBeLessThanOrEqual(seconds + 0.01);
  }

  const second = await world.execute(file);
  expect(second).toMatchObject({ exit: exit.done, plan: { unchanged: 4 }, runs: [] });
  expect(second.after.map(({ what, result }) => [what, result])).toEqual([["export", "unchanged"]]);
  expect(second.asked.filter((path) => !/\/(?:instances|runs)$/.test(path))).toEqual([]);
  expect(second.result.requests).toBeLessThanOrEqual(5);
});

test("its record is begun before the first request, and has each line that was told", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write();
  const records = async () => (await readdir(join(world.dir, "jobs", "nightly"))).length;
  let begun: Promise<number> | undefined;
  world.onAsked = () => {
    begun ??= records();
  };
  const { runs, result } = await world.execute(file);
  expect(await begun).toBe(1);
  const [name] = await readdir(join(world.dir, "jobs", "nightly"));
  const lines = (await readFile(join(world.dir, "jobs", "nightly", name!), "utf8")).trimEnd().split("\n");
  const told = lines.map((line) => JSON.parse(line) as { kind: string });
  expect(told.map(({ kind }) => kind)).toEqual(["begin", "plan", "run", "run", "after", "result"]);
  expect(told.slice(2, 4)).toEqual(runs);
  expect(told.at(-1)).toEqual(result);
  expect(lines.join("\n")).not.toContain(world.folder);
});

test("takes runs in an order in which none is lost and none starves", async () => {
  await using world = await JobWorld.open(1, 8);
  const [expiring, sooner, old, recent, changed, growing, failed, same] = world.runs.sources;
  const set = (source: typeof old, ended: bigint | undefined, more: object = {}) => {
    source!.entry = { ...source!.entry, started: (ended ?? daysAgo(1)) - 1n, ended, ...more };
  };
  set(expiring, daysAgo(11));
  set(sooner, daysAgo(12));
  set(old, daysAgo(3));
  set(recent, daysAgo(2));
  set(changed, daysAgo(5));
  set(growing, undefined, { status: "RUNNING", final: false });
  set(failed, daysAgo(4));
  set(same, daysAgo(1));
  const file = await world.write({ gateway: { keeps: "14d" }, parallel_runs: 1 });
  for (const source of [expiring, sooner, old, recent]) world.runs.gone.add(source!);
  failed!.manners = { refuses: () => new RunvaultError("refused", "no rows today") };
  expect((await world.execute(file)).exit).not.toBe(exit.done);
  failed!.manners = {};
  world.runs.gone.clear();
  changed!.entry = { ...changed!.entry, storageVersion: "2" };
  const { done, plan } = await world.execute(file);
  const order = [sooner, expiring, old, recent, changed, growing].map((source) => source!.run.runId);
  expect(done.map((text) => text.split(" ")[0]!.slice(3)).filter((id) => id !== failed!.run.runId)).toEqual(
    order,
  );
  expect(plan).toMatchObject({ expiring: 2, new: 2, growing: 1 });
});

test("a dry run says what each run is, and writes nothing at all", async () => {
  await using world = await JobWorld.open(1, 3);
  const file = await world.write();
  const before = await world.plan(file);
  expect(before.words).toEqual(["i1/r1 new", "i1/r2 new", "i1/r3 new"]);
  expect(before.planned.map(({ rows }) => rows)).toEqual([3, 3, 3]);
  expect(before.asked.filter((path) => path.includes("/storage")).length).toBeLessThanOrEqual(3);
  await expect(stat(world.dir)).rejects.toThrow("ENOENT");
  await world.execute(file);
  world.runs.sources[1]!.entry = { ...world.runs.sources[1]!.entry, storageVersion: "2" };
  const after = await world.plan(file);
  expect(after.words.toSorted()).toEqual(["i1/r1 unchanged", "i1/r2 changed", "i1/r3 unchanged"]);
  expect(await readdir(join(world.dir, "jobs", "nightly"))).toHaveLength(1);
});

test("the same job twice at once: the second ends, and says which is under way", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write();
  await world.execute(file);
  const archive = await world.archive();
  await using _lock = await lockJob(archive.layout, "nightly");
  await expect(world.execute(file)).rejects.toMatchObject({ code: "locked", exit: exit.locked });
  expect(world.log).toEqual([]);
});

test("an instance that does not exist is told, and the others are archived", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write({ runs: { instances: ["i1", "i9"] } });
  const { exit: status, done, errors, result } = await world.execute(file);
  expect(done).toEqual(["i1/r1 archived"]);
  expect(errors).toEqual(["instance_not_found"]);
  expect(status).toBe(exit.refused);
  expect(result.error?.code).toBe("instance_not_found");
});

test("takes the runs that its file chooses, and older ones where the archive holds them unproven", async () => {
  await using world = await JobWorld.open(2, 4);
  const [first, , third, fourth] = world.runs.sources;
  third!.entry = { ...third!.entry, status: "FAILED" };
  fourth!.entry = { ...fourth!.entry, status: "RUNNING", final: false, ended: undefined };
  const chosen = async (runs: object) => {
    const { words } = await world.plan(await world.write({ runs }));
    return words.map((text) => text.split(" ")[0]).toSorted();
  };
  expect(await chosen({ instances: ["i1"], status: ["finished"] })).toEqual(["i1/r1", "i1/r2"]);
  expect(await chosen({ instances: ["i?"], status: ["failed"] })).toEqual(["i1/r3"]);
  expect(await chosen({ instances: ["i1"], status: ["growing"] })).toEqual(["i1/r4"]);
  expect(await chosen({ exclude: ["i2/*", "*/r1"] })).toEqual(["i1/r2", "i1/r3", "i1/r4"]);
  expect(await chosen({ instances: ["i1"], ended_within: "36h", status: ["finished", "failed"] })).toEqual([
    "i1/r3",
  ]);
  const one = await world.plan(await world.write({ run: "i1/r1" }, "single"));
  expect(one.words).toEqual([`${first!.run.instanceId}/${first!.run.runId} new`]);
});

test("a run that the gateway forgot stays as proven; one that is not proven is gone, and told once", async () => {
  await using world = await JobWorld.open(1, 3);
  const [whole, growing] = world.runs.sources;
  growing!.entry = { ...growing!.entry, status: "RUNNING", final: false, ended: undefined };
  const file = await world.write();
  expect((await world.execute(file)).result.states).toEqual({ COMPLETE: 2, OPEN: 1 });
  world.runs.gone.add(whole!).add(growing!);
  const gone = await world.execute(file);
  expect(gone.done).toEqual(["i1/r2 gone"]);
  expect(gone.exit).toBe(exit.incomplete);
  expect(gone.result.troubles.map(({ key }) => key)).toContain("gone:i1/r2");
  expect(gone.plan).toEqual({ gone: 1, unchanged: 2 });
  const again = await world.execute(file);
  expect(again.exit).toBe(exit.done);
  expect(again.done).toEqual(["i1/r2 gone"]);
});

test("an instance of the same name at another gateway is refused, unless the file says that they are one", async () => {
  await using world = await JobWorld.open(2, 1);
  const { url } = world;
  await world.execute(await world.write({ runs: { instances: ["i1"] } }));
  await world.serve();
  const other = await world.execute(await world.write());
  expect(other.done).toEqual(["i2/r1 archived"]);
  expect(other.errors).toEqual(["history_identity_conflict"]);
  expect(other.exit).toBe(exit.incomplete);
  expect(other.result.error).toMatchObject({ message: expect.stringContaining(url) as string });
  const same = await world.execute(await world.write({ gateway: { source_alias: [url] } }));
  expect(same).toMatchObject({ exit: exit.done, plan: { unchanged: 2 } });
});

test("an execution that died is told by the next one, and what broke in one is in its record", async () => {
  await using world = await JobWorld.open(1, 1);
  const heard: string[] = [];
  const hook = createServer((request, response) => {
    request.on("data", (chunk) => heard.push(String(chunk))).on("end", () => response.end());
  });
  await new Promise<void>((done) => hook.listen(0, "127.0.0.1", done));
  await using _hook = { [Symbol.asyncDispose]: async () => void hook.close() };
  const { port } = hook.address() as AddressInfo;
  vi.stubEnv("JOB_TEST_HOOK", `http://127.0.0.1:${port}/5ecret`);
  const file = await world.write({ notify: { webhook: { url_env: "JOB_TEST_HOOK" } } });
  await world.execute(file);
  expect(heard).toEqual([]);
  const folder = join(world.dir, "jobs", "nightly");
  const [name] = await readdir(folder);
  const lines = (await readFile(join(folder, name!), "utf8")).trimEnd().split("\n");
  await writeFile(join(folder, name!), `${lines.slice(0, -1).join("\n")}\n`);
  const { told } = await world.execute(file);
  vi.unstubAllEnvs();
  expect(told).toMatchObject([{ to: "webhook", result: "done" }]);
  expect(heard.join("")).toContain("died without a result");
  const broken = await world.execute(await world.write(), {
    step: (name) => {
      if (name === "planned-job") throw new Error("broken");
    },
  });
  expect(broken).toMatchObject({ exit: exit.bug, result: { error: { code: "internal" }, exit: exit.bug } });
});

test("a gateway's clock that is far from ours is told, and what is settled goes by the earlier of the two", async () => {
  await using world = await JobWorld.open(1, 1);
  const [source] = world.runs.sources;
  source!.entry = { ...source!.entry, status: "RUNNING", final: false, ended: undefined };
  const ahead = () => wallClock() + 3_600_000_000_000n;
  const file = await world.write({ settle: "60s" });
  const { notes, exit: status } = await world.execute(file, { clock: ahead });
  expect(status).toBe(exit.done);
  expect(notes).toEqual([
    expect.stringMatching(/^the gateway's clock is (1 h 0|59) min.* behind this machine's/),
  ]);
  expect((await world.execute(await world.write({ settle: "3h" }), { clock: ahead })).notes).toEqual([]);
});

test("where the gateway has no storage versions, a run is asked about again after recheck, and no sooner", async () => {
  await using world = await JobWorld.open(1, 2);
  for (const source of world.runs.sources) source.entry = { ...source.entry, storageVersion: undefined };
  const file = await world.write({ recheck: "2d" });
  const later = (days: bigint) => ({ clock: () => wallClock() + days * day });
  await world.execute(file);
  expect((await world.execute(file, later(1n))).plan).toEqual({ unchanged: 2 });
  const due = await world.execute(file, later(3n));
  expect(due.plan).toEqual({ changed: 2 });
  expect(due.done.toSorted()).toEqual(["i1/r1 unchanged", "i1/r2 unchanged"]);
  expect((await world.execute(file, later(4n))).plan).toEqual({ unchanged: 2 });
});
