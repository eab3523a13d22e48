import { expect, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const rows = { fills: hours(60), orders: hours(60) };

/** Archives until an orderly end is asked for at the nth time of a step. */
async function woundDown(step: string, times: number) {
  const source = new ArraySource(run, world(rows));
  const archived = await TableWorld.create();
  const windDown = new AbortController();
  const steps: string[] = [];
  let left = times;
  const stopped = archived.archiveRun(source, {
    windDown: windDown.signal,
    step: (name) => {
      steps.push(name);
      if (name === step && --left === 0) windDown.abort(new RunvaultError("interrupted", "the deadline"));
    },
  });
  const end = await stopped.then(
    ({ manifest }) => manifest.state,
    (thrown: unknown) => RunvaultError.from(thrown).message,
  );
  return { source, archived, end, after: steps.slice(steps.indexOf(step) + 1) };
}

test("an orderly end stops fetching, keeps what came, and the next job goes on from there", async () => {
  const { source, archived, end, after } = await woundDown("segment-journalled", 2);
  await using _archived = archived;
  expect(end).toBe("the deadline");
  expect(after).not.toContain("certified");
  const asked = source.asked.length;
  const { manifest, resumedSegments } = await archived.archiveRun(source);
  expect(manifest.state).toBe("COMPLETE");
  expect(resumedSegments).toBeGreaterThan(0);
  const from = source.asked.slice(asked).filter(({ table }) => table === "fills")[0]!.from!;
  expect(from).toBeGreaterThan(source.tables.get("fills")![0]!.ts);
});

test("a run whose rows are all here goes on to its commit", async () => {
  const { archived, end } = await woundDown("converted", 2);
  await using _archived = archived;
  expect(end).toBe("COMPLETE");
});

test("nothing begins after an orderly end was asked for", async () => {
  const { source, archived, end } = await woundDown("planned", 1);
  await using _archived = archived;
  expect(end).toBe("the deadline");
  expect(source.asked).toEqual([]);
});
