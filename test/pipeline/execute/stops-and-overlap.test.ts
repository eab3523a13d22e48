import { expect, test } from "vitest";
import { lockRun } from "../../../src/archive/lock.ts";
import { exit, RunvaultError } from "../../../src/model/error.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("at the deadline no run begins any more, and the next execution goes on there", async () => {
  await using world = await JobWorld.open(1, 4);
  const file = await world.write({ parallel_runs: 1 });
  const controller = new AbortController();
  const stopped = await world.execute(file, {
    signal: controller.signal,
    watcher: {
      run: (_run, number) => {
        if (number === 3)
          controller.abort(new RunvaultError("interrupted", "stopped by SIGTERM", { status: 143 }));
      },
    },
  });
  expect(stopped.exit).toBe(exit.terminated);
  expect(stopped.done.slice(0, 2)).toEqual(["i1/r1 archived", "i1/r2 archived"]);
  expect(stopped.result.results.not_tried).toBeGreaterThan(0);
  expect(stopped.result.error?.code).toBe("interrupted");
  const again = await world.execute(file);
  expect(again.exit).toBe(exit.done);
  expect(again.plan.unchanged).toBe(2);
});

test("a deadline that leaves nothing undone changes nothing", async () => {
  await using world = await JobWorld.open(1, 1);
  const controller = new AbortController();
  const step = (name: string) => {
    if (name === "verified-job") controller.abort(new RunvaultError("deadline", "the deadline"));
  };
  const { exit: status } = await world.execute(await world.write(), { signal: controller.signal, step });
  expect(status).toBe(exit.done);
});

test("exports that the deadline came before are told, and made by the next execution", async () => {
  await using world = await JobWorld.open(1, 1);
  const controller = new AbortController();
  const file = await world.write({ after: { exports: [{ tables: ["fills"], out: "fills.csv" }] } });
  const step = (name: string) => {
    if (name === "verified-job") controller.abort(new RunvaultError("deadline", "the deadline"));
  };
  const { exit: status, after } = await world.execute(file, { signal: controller.signal, step });
  expect(status).toBe(exit.deadline);
  expect(after.at(-1)).toMatchObject({ what: "export", result: "failed", error: { code: "deadline" } });
  expect((await world.execute(file)).after.at(-1)).toMatchObject({ result: "done", rows: 3 });
});

test("a run that another process has is put last, and done by the other where that commits it", async () => {
  await using world = await JobWorld.open(1, 3);
  const one = await world.write({}, "one");
  const two = await world.write({ runs: { exclude: ["*/r3"] } }, "two");
  // the first has both runs, without rows, until the second has tried both
  const [taken, tried] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const waiting = new Set<string>();
  for (const source of world.runs.sources.slice(0, 2)) {
    const rows = source.rows.bind(source);
    source.rows = async function* (request) {
      if (waiting.add(request.runId).size === 2) taken.resolve();
      await tried.promise;
      yield* rows(request);
    };
  }
  const first = world.execute(one);
  await taken.promise;
  const second = world.execute(two, {
    watcher: {
      run: (_run, number) => {
        if (number === 2) tried.resolve();
      },
    },
  });
  const [a, b] = await Promise.all([first, second]);
  expect([a.exit, b.exit]).toEqual([exit.done, exit.done]);
  expect(a.done.toSorted()).toEqual(["i1/r1 archived", "i1/r2 archived", "i1/r3 archived"]);
  expect(b.done.toSorted()).toEqual(["i1/r1 by_other", "i1/r2 by_other"]);
});

test("a run that another process has to the end is told with exit status 6", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write({ per_run: "300ms" });
  await world.execute(await world.write({ runs: { exclude: ["*/r2"] } }, "first"));
  world.runs.sources[0]!.entry = { ...world.runs.sources[0]!.entry, storageVersion: "2" };
  const { layout } = await world.archive();
  await using _lock = await lockRun(layout, world.runs.sources[0]!.run);
  expect((await world.plan(file)).words).toEqual(["i1/r2 new", "i1/r1 held"]);
  const { exit: status, done, runs } = await world.execute(file);
  expect(done).toEqual(["i1/r2 archived", "i1/r1 held"]);
  expect(status).toBe(exit.locked);
  expect(runs[1]!.error?.message).toContain(`pid ${process.pid}`);
});
