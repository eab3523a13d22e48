// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseFault } from "../../src/faults/fault.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { worldRun } from "../fixtures/archive/archived-world.ts";
import { expectOutcome, FaultyWorld, fills, type Outcome, whole } from "../fixtures/archive/fault-outcome.ts";
import {
  isInRoom,
  type RestFaultKind,
  restFaultCases,
  restFaultKinds,
  restModes,
} from "../fixtures/archive/rest-fault-cases.ts";
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

it("has an expectation for each kind of fault that there is", () => {
  expect(Object.keys(restFaultCases).sort()).toEqual(restFaultKinds.map(({ kind }) => kind).sort());
  for (const [kind, list] of Object.entries(restFaultCases)) {
    expect(list.length).toBeGreaterThan(0);
    for (const { fault } of list) expect(parseFault(fault).kind).toBe(kind);
  }
});

for (const { kind, meaning } of restFaultKinds) {
  for (const one of restFaultCases[kind as RestFaultKind]) {
    for (const mode of restModes) {
      if (isInRoom(kind as RestFaultKind, one, mode) === isTestAll) continue;
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

describe("a fault that outlives the retries", () => {
  for (const [fault, code] of [
    ["status-500@fills*1000", "server_error"],
    ["status-502@fills*1000", "history_unreachable"],
    ["cut@fills:0*1000", "stream_cut"],
  ] as const) {
    it(`${fault} makes its table INCOMPLETE with ${code}, keeps the others, and is made good by the next call`, async () => {
      const dir = await mkdtemp(join(folder, "archive-"));
      const outcome: Outcome = { state: "INCOMPLETE", code, holds: "nothing" };
      await expectOutcome(await world.archive(dir, [fault], "facts"), outcome);
      await expectOutcome(await world.archive(dir, [], "facts"), whole);
    });
  }

  it("keeps what an earlier call committed of a table that now fails", async () => {
    const dir = await mkdtemp(join(folder, "archive-"));
    // rows are missing at first, so that the table is not up to date
    const first = await world.archive(dir, ["facts-disagree@fills:2"], "facts");
    await expectOutcome(first, restFaultCases["facts-disagree"][0]!.facts);
    const second = await world.archive(dir, ["facts-disagree@fills:4", "foreign-run@fills:3"], "facts");
    expect(second.manifest.tables.fills!.state).toBe("INCOMPLETE");
    expect(await parquetLines(second.archive, worldRun, "fills")).toEqual(fills);
    await expectOutcome(await world.archive(dir, [], "facts"), whole);
  });
});
