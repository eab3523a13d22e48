import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  AllowedDifferences,
  differingFields,
  type FoundDifference,
  sentence,
} from "../fixtures/differential/difference-check.ts";
import { differences, varying } from "../fixtures/differential/differences.ts";
import { type Answer, answerOf } from "../fixtures/differential/differential-answer.ts";
import { doorRequests } from "../fixtures/differential/differential-door-requests.ts";
import { type DifferentialRequest, told } from "../fixtures/differential/differential-request.ts";
import {
  controlRequests,
  historyRequests,
  lifecycleRequests,
  misdirectedRequests,
  monitoringRequests,
} from "../fixtures/differential/differential-rest-requests.ts";
import { routeOf } from "../fixtures/differential/differential-route.ts";
import {
  controlCalls,
  historyCalls,
  lifecycleCalls,
  malformedCalls,
  methodOf,
  nextPage,
  rpcMethods,
} from "../fixtures/differential/differential-rpc-requests.ts";
import { type Side, Sides } from "../fixtures/differential/differential-sides.ts";
import { namedWorld } from "../fixtures/differential/differential-world.ts";

const mostDifferences = 20;
const leastRequests = 400;

let folder: string;
let sides: Sides;
let requests: DifferentialRequest[];
let simulator: Answer[];
/** Sentences about what differs and is on neither list. */
const unlisted: string[] = [];
const allowed = new AllowedDifferences(differences);
const natural = new AllowedDifferences(varying);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-differential-"));
  sides = await Sides.open(folder);
  const world = await namedWorld(sides.world);
  requests = [
    ...historyRequests(world),
    ...historyCalls(world),
    ...controlRequests(world, "ended"),
    ...controlCalls(world, "ended"),
    ...monitoringRequests(),
    ...misdirectedRequests(world),
    ...malformedCalls(),
    ...doorRequests(world),
    ...controlRequests(world, "running"),
    ...controlCalls(world, "running"),
    ...lifecycleRequests(world),
    ...lifecycleCalls(world),
  ];
  const first = await Promise.all([answers(sides.simulator, requests), answers(sides.archive, requests)]);
  simulator = first[0];
  // the tokens of one side's pages go on at the other
  const pages = requests.flatMap((asked, index) => nextPage(asked, simulator[index]!.fields) ?? []);
  simulator.push(...(await answers(sides.simulator, pages)));
  const archive = [...first[1], ...(await answers(sides.archive, pages))];
  requests.push(...pages);

  const differing = requests.map((_, index) => found(index, archive[index]!));
  for (const [index, differences] of differing.entries()) {
    for (const difference of differences) {
      if (natural.covers(difference) || allowed.meet(difference)) continue;
      unlisted.push(sentence(difference, ["simulator", "archive"], told(requests[index]!)));
    }
  }
  // what passes as natural has to differ on a second simulator too
  const again = [...requests.keys()].filter((index) =>
    differing[index]!.some((difference) => natural.covers(difference)),
  );
  const twin = await answers(
    sides.twin,
    again.map((index) => requests[index]!),
  );
  for (const [at, index] of again.entries()) {
    for (const difference of found(index, twin[at]!)) {
      if (natural.meet(difference)) continue;
      unlisted.push(sentence(difference, ["simulator", "twin"], told(requests[index]!)));
    }
  }
  // two worlds are rendered, and a thousand requests made
}, 240_000);
afterAll(async () => {
  await sides?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Asks one after the other, for a server counts, and an action changes what comes after it. */
async function answers(side: Side, asked: readonly DifferentialRequest[]): Promise<Answer[]> {
  const all: Answer[] = [];
  for (const each of asked) {
    side.setPhase(each.phase);
    try {
      all.push(await answerOf(side, each, methodOf(each.path)));
    } catch (cause) {
      throw new Error(`no answer of ${side.name} to ${told(each)}`, { cause });
    }
  }
  return all;
}

function found(index: number, other: Answer): FoundDifference[] {
  const { path, phase } = requests[index]!;
  return differingFields(simulator[index]!, other, { route: routeOf(path, sides.simulator.routes), phase });
}

test("an archive answers as the gateway it was made from, but for what the list allows", () => {
  console.info(`${requests.length} requests compared, ${differences.length} differences allowed`);
  expect(unlisted).toEqual([]);
  expect(requests.length).toBeGreaterThanOrEqual(leastRequests);
});

test("what the list allows is little, and all of it is so", () => {
  expect(differences.length).toBeLessThanOrEqual(mostDifferences);
  expect(allowed.unmet()).toEqual([]);
});

test("what varies by nature varies between two servers of one source", () => {
  expect(natural.unmet()).toEqual([]);
});

test("both have the same routes, and each of them was asked", () => {
  const { simulator: one, archive: other } = sides;
  expect([...other.routes].sort()).toEqual([...one.routes].sort());
  expect(one.routes.size).toBeGreaterThan(rpcMethods.size);
  for (const { routes, reached } of [one, other]) {
    expect([...routes].filter((route) => !reached.has(route))).toEqual([]);
  }
});

test("each route and each method gave the gateway's clients something at least once", () => {
  const all = [...sides.simulator.routes].map((route) =>
    routeOf(route.split(" ")[1]!, sides.simulator.routes),
  );
  const good = requests
    .filter((_, index) => gaveSomething(simulator[index]!))
    .map(({ path }) => routeOf(path, sides.simulator.routes));
  // whatever a service does not have gives nothing
  const served = all.filter((route) => !route.endsWith("Service/*"));
  expect([...new Set(served)].filter((route) => !good.includes(route))).toEqual([]);
  expect([...rpcMethods.keys()].filter((path) => !good.includes(routeOf(path, new Set())))).toEqual([]);
});

function gaveSomething({ status, fields }: Answer): boolean {
  return status === 101 || (status < 300 && fields.get("body") !== "");
}
