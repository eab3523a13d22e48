// @module-tag slow
import fc from "fast-check";
import { expect, test } from "vitest";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";
import { runWorld, type Tally } from "../fixtures/worlds/run-world.ts";
import { worldPlan } from "../fixtures/worlds/world-plan.ts";

// `npm run worlds` and `npm run trials` run as many as one wants
const worlds = trialCount(20);

test("an archive of any gateway shows what was true, keeps what was proven, and alarms for a reason alone", async () => {
  const tally: Tally = new Map();
  const result = await fc.check(
    fc.asyncProperty(worldPlan, (plan) => runWorld(plan, tally)),
    { numRuns: worlds, seed: trialSeed, endOnFailure: true },
  );
  const repeat = `npm run worlds -- --seed ${trialSeed} --path ${result.counterexamplePath}`;
  expect(result.failed ? `${result.errorInstance}\n${repeat}` : null).toBeNull();
  // worlds that are all of one kind would show nothing
  for (const name of ["worlds: honest", "worlds: hostile", "exit: 0", "exit: 4", "tables: OPEN"]) {
    expect([name, (tally.get(name) ?? 0) > worlds / 10]).toEqual([name, true]);
  }
}, 240_000);
