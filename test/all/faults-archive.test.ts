import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { expectOutcome, FaultyWorld, whole } from "../fixtures/archive/fault-outcome.ts";
import {
  isInRoom,
  type RestFaultKind,
  restFaultCases,
  restFaultKinds,
  restModes,
} from "../fixtures/archive/rest-fault-cases.ts";
import { isRetried, kindsOverRpc, type RpcKind, rpcFaultCases } from "../fixtures/archive/rpc-fault-cases.ts";

const world = new FaultyWorld();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-faults-"));
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

// those that test/faults/faults-archive.test.ts leaves out
for (const { kind, meaning } of restFaultKinds) {
  for (const one of restFaultCases[kind as RestFaultKind]) {
    for (const mode of restModes) {
      if (isInRoom(kind as RestFaultKind, one, mode)) continue;
      const outcome = one[mode];
      const ends = outcome.code === undefined ? outcome.state : `${outcome.state}, ${outcome.code}`;
      const how = mode === "facts" ? "with storage facts" : "from a literal gateway";
      it(`${kind}: ${meaning}: ${one.fault} ${how} ends ${ends}, and without it COMPLETE`, async () => {
        const dir = await mkdtemp(join(folder, "archive-"));
        await expectOutcome(await world.archive(dir, [one.fault], mode), outcome);
        // what is proven is not asked for again while the run's version stands; anything else is made good
        if (outcome.state === "COMPLETE" || (outcome.state === "ABSENT" && mode === "facts")) return;
        await expectOutcome(await world.archive(dir, [], mode), whole);
      });
    }
  }
}

// those that test/faults/faults-archive-rpc.test.ts leaves out
for (const { kind, meaning } of kindsOverRpc) {
  for (const [fault, outcome] of rpcFaultCases[kind as RpcKind].slice(1)) {
    const ends = outcome.code === undefined ? outcome.state : `${outcome.state}, ${outcome.code}`;
    it(`${kind}: ${meaning}: ${fault} over RPC ends ${ends}, and without it COMPLETE`, async () => {
      const dir = await mkdtemp(join(folder, "archive-"));
      const archived = await world.archive(dir, [fault], "rpc");
      await expectOutcome(archived, outcome);
      if (isRetried.has(kind)) expect(archived.retries).toBeGreaterThan(0);
      // what is proven is not asked for again while the run's version stands; anything else is made good
      if (outcome.state === "COMPLETE" || outcome.state === "ABSENT") return;
      await expectOutcome(await world.archive(dir, [], "rpc"), whole);
    });
  }
}
