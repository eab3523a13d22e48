// @module-tag slow
import { describe, expect, test } from "vitest";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";
import { kinds } from "../fixtures/worlds/kinds/kind-plan.ts";
import { failsToday, tryKind } from "../fixtures/worlds/kinds/kind-tally.ts";

// one kind of gateway a test: what a command was told is kept to, and an honest gateway causes no alarm
describe("three nights of any gateway", () => {
  const worlds = trialCount(50);
  test.each(kinds.filter((kind) => !failsToday.has(kind)))(
    "of the kind %s are proven, or told of",
    async (kind) => {
      const { failed, examples } = await tryKind(kind, trialSeed, worlds);
      expect([failed, examples]).toEqual([0, examples]);
    },
    240_000,
  );
});
