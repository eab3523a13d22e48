import { expect, test } from "vitest";
import { openArchive } from "../../../src/archive/archive.ts";
import { committedBytes } from "../../../src/archive/manifest/manifest-files.ts";
import { formatRun } from "../../../src/model/run-argument.ts";
import { isoOf, wallClock } from "../../../src/model/time.ts";
import { unkeptRuns } from "../../../src/pipeline/execute/keep-runs.ts";
import { readJobFiles } from "../../../src/pipeline/file/job-files.ts";
import { beginLine, resultLine, writeRecord } from "../../fixtures/archive/job-records.ts";
import { daysAgo, JobWorld } from "../../fixtures/pipeline/job-world.ts";

const heldIn = async (world: JobWorld) => (await (await world.archive()).manifests()).map(formatRun).sort();

// without the choice by age, what was removed would be fetched again each night
test("runs older than keep.runs are removed after the execution, told, and not fetched again", async () => {
  await using world = await JobWorld.open(1, 3);
  await world.execute(await world.write());
  expect(await heldIn(world)).toEqual(["i1/r1", "i1/r2", "i1/r3"]);
  const file = await world.write({ keep: { runs: "36h" }, after: { verify: "nothing" } });
  expect((await world.plan(file)).toRemove.runs).toBe(1);
  const { exit, after } = await world.execute(file);
  expect([exit, after]).toMatchObject([0, [{ what: "keep", result: "done", removed: { runs: 1 } }]]);
  const { bytes, named } = after[0]!.removed!;
  expect(bytes).toBeGreaterThan(0);
  // which runs went was nowhere to be read
  expect(named).toEqual([{ instance: "i1", run: "r1", bytes }]);
  expect(await heldIn(world)).toEqual(["i1/r2", "i1/r3"]);
  const next = await world.execute(file);
  expect(next.plan).toEqual({ unchanged: 2 });
  expect(next.after).toMatchObject([{ removed: { runs: 0 } }]);
});

test("the oldest runs go until the archive is no larger than keep.disk", async () => {
  await using world = await JobWorld.open(1, 3);
  const file = await world.write({ after: { verify: "nothing" } });
  await world.execute(file);
  const { files } = await readJobFiles([file], { env: {} });
  const { job } = files[0]!.job!;
  const archive = await world.archive();
  const manifests = await archive.manifests();
  const { signal } = new AbortController();
  const chosen = async (disk: number, source = manifests[0]!.source) => {
    const sized = { ...job, keep: { ...job.keep, disk } };
    return (await unkeptRuns(archive, sized, new Set([source]), wallClock(), signal)).map(formatRun);
  };
  const bytes = manifests.reduce((sum, one) => sum + committedBytes(one), 0);
  expect(await chosen(bytes)).toEqual([]);
  expect(await chosen(bytes - 1)).toEqual(["i1/r1"]);
  expect(await chosen(0)).toEqual(["i1/r1", "i1/r2", "i1/r3"]);
  // the same names from another gateway are not this job's
  expect(await chosen(0, "http://other/api/v1")).toEqual([]);
});

test("a run that was removed for want of room is not fetched again", async () => {
  await using world = await JobWorld.open(1, 3);
  const archive = await openArchive(world.dir, { create: true });
  const at = isoOf(daysAgo(0.5));
  await writeRecord(
    archive.layout,
    beginLine(1, { at }),
    { kind: "plan", at, runs: {} },
    {
      ...{ kind: "after", at, what: "keep", out: null, result: "done", rows: null, seconds: 1, error: null },
      ...{ removed: { runs: 2, bytes: 9, garbage: 0, named: [] }, removedUpTo: isoOf(daysAgo(1)) },
    },
    resultLine({ at }),
  );
  const keys = { keep: { disk: "1GB" }, after: { verify: "nothing" } };
  const { plan, after } = await world.execute(await world.write(keys));
  expect(plan).toEqual({ new: 1 });
  // the instant is handed on: records are thinned
  expect(after).toMatchObject([{ what: "keep", removed: { runs: 0 }, removedUpTo: expect.any(String) }]);
});
