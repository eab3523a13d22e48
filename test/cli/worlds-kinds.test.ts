// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isTestAll } from "../fixtures/trials/cases.ts";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";
import { archiveIn, faults, KindJudge } from "../fixtures/worlds/kinds/kind-checks.ts";
import { kindPlanAt } from "../fixtures/worlds/kinds/kind-draws.ts";
import { KindGateway } from "../fixtures/worlds/kinds/kind-gateway.ts";
import { isHonest, type Kind, type KindPlan, kinds, nightCount } from "../fixtures/worlds/kinds/kind-plan.ts";
import { isKept, tryKind } from "../fixtures/worlds/kinds/kind-tally.ts";
import { archiveKind, runKind } from "../fixtures/worlds/kinds/run-kind.ts";

// each kind alone would find: a table COMPLETE or OPEN though the command was told of more rows, proven rows that are
// hidden, an alarm about a gateway of that kind that is honest; test/all/worlds-kinds.test.ts tries more of each
const worldsOf = (kind: Kind) => trialCount(isTestAll ? (isHonest(kind) ? 6 : 50) : 1);

describe("three nights of a gateway", () => {
  test.each(kinds)(
    "of the kind %s leave nothing proven that the gateway contradicted, and no alarm without a cause",
    async (kind) => {
      const tally = await tryKind(kind, trialSeed, worldsOf(kind));
      expect([isKept(tally), tally.examples]).toEqual([true, tally.examples]);
    },
    240_000,
  );
});

// worlds of the trials in which a table was proven without rows that the command had been told of; in the last, an honest
// gateway corrected rows between two slices, and the table was UNVERIFIED
test.each([
  ["replicas-random", 9, 681],
  ["replicas-random", 8, 237],
  ["caps", 9, 65],
  ["replicas-sticky", 9, 185],
  ["honest-new-rows", 21, 69],
] as const)("world %s, seed %s, path %s", async (kind, seed, path) => {
  const nights = await runKind(kindPlanAt(kind, seed, path));
  const wrong = nights.flatMap(({ judged }) => judged).filter(({ outcome }) => faults.includes(outcome));
  expect(wrong).toEqual([]);
});

// without it the worlds would go on to be right, whatever became of the archive
test("the judge of worlds sees rows that are missing, hidden or never were, and an exit status that lies", async () => {
  const whole = { ...kindPlanAt("caps", 1, 0), facts: true, cap: null, finalFrom: 0 };
  const plan: KindPlan = {
    ...whole,
    lack: { how: "last", who: "one", share: 10, table: null, from: 0, to: nightCount },
  };
  const dir = await mkdtemp(join(tmpdir(), "runvault-judge-"));
  await using gateway = await KindGateway.open(plan);
  const report = await archiveKind(plan, gateway, dir);
  const judge = new KindJudge(plan, gateway, dir);
  const outcomesOf = async (one: KindJudge) => (await one.night(report)).map(({ outcome }) => outcome);
  const all = (outcome: string) => plan.tables.map(() => outcome);
  expect(await outcomesOf(judge)).toEqual(all("right"));

  await using other = await KindGateway.open(whole);
  other.beginNight();
  expect(await outcomesOf(new KindJudge(whole, other, dir))).toEqual(all("untold"));
  const told = { within: {}, rows: 999, first: undefined, last: undefined };
  other.nights[0]!.told.push(...whole.tables.map((_, table) => ({ table, ...told })));
  expect(await outcomesOf(new KindJudge(whole, other, dir))).toEqual(all("told"));
  other.beginNight();
  expect(await outcomesOf(new KindJudge(whole, other, dir))).toEqual(all("told earlier"));

  const reseeded = { ...plan, seed: plan.seed + 1 };
  await using stranger = await KindGateway.open(reseeded);
  stranger.beginNight();
  expect(await outcomesOf(new KindJudge(reseeded, stranger, dir))).toEqual(all("foreign"));

  await rm(archiveIn(dir), { recursive: true });
  expect(await outcomesOf(new KindJudge(plan, gateway, dir))).toEqual(all("silent"));
  expect(await outcomesOf(judge)).toEqual(all("hidden"));
});
