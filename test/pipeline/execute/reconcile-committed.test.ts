import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exit } from "../../../src/model/error.ts";
import { serve } from "../../../src/serve/server.ts";
import { parseBookFault } from "../../../src/simulator/books/book-fault.ts";
import { openSimulator, type SimulatorOptions } from "../../../src/simulator/simulator.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

const run = "alpha-1/2022-01-01-001";

let cacheDir: string;
beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "reconcile-worlds-"));
});
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

/** Executes a job over a simulated gateway with one run, as often as it says. */
async function executed(
  world: JobWorld,
  options: Partial<SimulatorOptions>,
  reconcile: object | undefined,
  times = 1,
) {
  await using source = await openSimulator({
    runs: 1,
    failed: 0,
    rows: 600,
    cacheDir,
    ...options,
  });
  const served = await serve({ source, host: "127.0.0.1", port: 0, onError: () => {} });
  try {
    const file = await world.write({
      gateway: { url: served.url },
      tables: "all",
      runs: { instances: ["alpha-1"] },
      after: { verify: "nothing", ...(reconcile === undefined ? {} : { reconcile }) },
    });
    const all = [];
    for (let time = 0; time < times; time++) all.push(await world.execute(file));
    return all;
  } finally {
    await served.close();
  }
}

const shiftFee = { bookFaults: [parseBookFault("shift-fee@*")] };

test("books that do not balance fail the job with exit status 4, are recorded, and are told once", async () => {
  await using world = await JobWorld.open(1, 1);
  const [first, second] = await executed(world, shiftFee, {}, 2);
  expect(first!.exit).toBe(exit.incomplete);
  expect(first!.after).toMatchObject([
    { what: "reconcile", out: run, result: "failed", verdict: "BREAKS", error: { code: "incomplete" } },
  ]);
  expect(first!.after[0]!.error!.message).toMatch(
    /^the books of alpha-1\/2022-01-01-001 do not balance: check 2, equity from the rows: \d+ breaks?$/,
  );
  const trouble = first!.result.troubles.find(({ kind }) => kind === "after")!;
  expect(trouble).toMatchObject({ key: `after:reconcile:${run}`, instance: "alpha-1", mended: null });
  // what was committed once is not looked at again, and its trouble is not over for that
  expect(second).toMatchObject({ exit: exit.done, after: [] });
  expect(second!.result.troubles.map(({ key, mended }) => [key, mended])).toContainEqual([
    `after:reconcile:${run}`,
    null,
  ]);
});

test("books that balance are recorded as such, and a tolerance takes what is within it", async () => {
  await using world = await JobWorld.open(1, 1);
  const [clean] = await executed(world, {}, {});
  expect(clean).toMatchObject({
    exit: exit.done,
    after: [{ what: "reconcile", out: run, result: "done", verdict: "HOLDS", error: null }],
  });
  await using other = await JobWorld.open(1, 1);
  const [tolerated] = await executed(other, shiftFee, { tolerance: "0.000001" });
  expect(tolerated).toMatchObject({ exit: exit.done, after: [{ verdict: "HOLDS" }] });
});

test("without the key nothing is reconciled", async () => {
  await using world = await JobWorld.open(1, 1);
  expect((await executed(world, shiftFee, undefined))[0]).toMatchObject({ exit: exit.done, after: [] });
});

test("instruments are read from a file beside the job's", async () => {
  await using world = await JobWorld.open(1, 1);
  await writeFile(join(world.folder, "instruments.yaml"), "- { symbol: BTC-PERP, multiplier: 10 }\n");
  const [found] = await executed(world, {}, { instruments: "instruments.yaml" });
  expect(found!.after).toMatchObject([{ verdict: "BREAKS" }]);
});

test("an instruments file that is not there is told by its name, and undoes nothing", async () => {
  await using world = await JobWorld.open(1, 1);
  const [found] = await executed(world, {}, { instruments: "nowhere.yaml" });
  expect(found!.exit).toBe(exit.usage);
  expect(found!.after).toMatchObject([
    { result: "failed", error: { message: expect.stringMatching(/nowhere\.yaml/) } },
  ]);
  expect(found!.result.states).toEqual({ COMPLETE: 1 });
});
