// @module-tag slow
import { describe, expect, test } from "vitest";
import { isTestAll } from "../fixtures/trials/cases.ts";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";
import { kinds } from "../fixtures/worlds/kinds/kind-plan.ts";
import { failsToday, isKept, tryKind } from "../fixtures/worlds/kinds/kind-tally.ts";

// each kind alone would find: a table COMPLETE or OPEN though the command was told of more rows, proven rows that are
// hidden, an alarm about a gateway of that kind that is honest; test/all/worlds-kinds.test.ts tries more of each
const worlds = trialCount(isTestAll ? 50 : 3);

describe("three nights of a gateway", () => {
  test.each(kinds.filter((kind) => !failsToday.has(kind)))(
    "of the kind %s leave nothing proven that the gateway contradicted, and no alarm without a cause",
    async (kind) => {
      const tally = await tryKind(kind, trialSeed, worlds);
      expect([isKept(tally), tally.examples]).toEqual([true, tally.examples]);
    },
    240_000,
  );
});
