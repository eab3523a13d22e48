// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseFault } from "../../src/faults/fault.ts";
import { expectOutcome, FaultyWorld, whole } from "../fixtures/archive/fault-outcome.ts";
import { type RestFaultKind, restFaultCases } from "../fixtures/archive/rest-fault-cases.ts";
import { isRetried, kindsOverRpc, type RpcKind, rpcFaultCases } from "../fixtures/archive/rpc-fault-cases.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

const world = new FaultyWorld();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-faults-"));
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

it("has an expectation for each kind of fault that there is over RPC", () => {
  expect(Object.keys(rpcFaultCases).sort()).toEqual(kindsOverRpc.map(({ kind }) => kind).sort());
  for (const [kind, list] of Object.entries(rpcFaultCases)) {
    expect(list.length).toBeGreaterThan(0);
    for (const [fault] of list) expect(parseFault(fault).kind).toBe(kind);
  }
});

/** In npm test the first of each kind that comes to something else than over REST. */
function isTried(kind: RpcKind, nth: number): boolean {
  const overRest = kind in restFaultCases ? restFaultCases[kind as RestFaultKind][0] : undefined;
  const isOther = JSON.stringify(rpcFaultCases[kind][0]![1]) !== JSON.stringify(overRest?.facts);
  return (nth === 0 && isOther) !== isTestAll;
}

for (const { kind, meaning } of kindsOverRpc) {
  for (const [fault, outcome] of rpcFaultCases[kind as RpcKind].filter((_, nth) =>
    isTried(kind as RpcKind, nth),
  )) {
    const ends = outcome.code === undefined ? outcome.state : `${outcome.state}, ${outcome.code}`;
    it(`${kind}: ${meaning}: ${fault} over RPC ends ${ends}, and without it COMPLETE`, async () => {
      const dir = await mkdtemp(join(folder, "archive-"));
      const archived = await world.archive(dir, [fault], "rpc");
      await expectOutcome(archived, outcome);
      // a refusal would be the same once more
      if (isRetried.has(kind) && outcome.code !== "permission_denied")
        expect(archived.retries).toBeGreaterThan(0);
      // what is proven is not asked for again while the run's version stands; anything else is made good
      if (outcome.state === "COMPLETE" || outcome.state === "ABSENT") return;
      await expectOutcome(await world.archive(dir, [], "rpc"), whole);
    });
  }
}
