import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FaultKind, faultKinds, parseFault } from "../../src/faults/fault.ts";
import {
  absent,
  expectOutcome,
  FaultyWorld,
  failing,
  type Outcome,
  whole,
} from "../fixtures/archive/fault-outcome.ts";

type Cases = readonly (readonly [fault: string, outcome: Outcome])[];
const passes = (...faults: string[]): Cases => faults.map((fault) => [fault, whole]);
/** The server cannot put the row on the wire and says so; nothing can be set aside of a row that never comes. */
const unsendable = (fault: string): Cases => [
  [fault, { state: "INCOMPLETE", code: "history_query_failed", holds: "some" }],
];

type Kind = Exclude<FaultKind, "cut">;
const kindsOverRpc = faultKinds.filter(({ only }) => only !== "rest");

/** What archiving over RPC makes of every kind of fault. */
const cases: Record<Kind, Cases> = {
  "cut-clean": passes("cut-clean@fills:0", "cut-clean@fills:10*4", "cut-clean@fills:0*4"),
  "cut-bytes": passes("cut-bytes@fills:0", "cut-bytes@fills:300"),
  "cut-bytes-clean": passes("cut-bytes-clean@fills:0", "cut-bytes-clean@fills:300"),
  stall: passes("stall@fills:3"),
  delay: passes("delay@fills:50", "delay@storage:50*2"),
  "rate-limit": passes("rate-limit@fills:0*2", "rate-limit@summary:0*2"),
  "status-500": passes("status-500@fills*2", "status-500@summary*2"),
  "status-502": passes("status-502@fills*2", "status-502@storage*2"),
  "status-409": [
    ["status-409@fills", failing("history_identity_conflict")],
    ["status-409@fills:history_incomplete", failing("incomplete")],
    ["status-409@fills:history_unavailable", failing("history_unavailable")],
  ],
  absent: [["absent@fills", absent]],
  cap: passes("cap@fills:3"),
  "tie-cap": [
    ["tie-cap@fills:5,6,4", { state: "COMPLETE", holds: "some" }],
    [
      "tie-cap@fills:5,6,2",
      failing("incomplete", "gives 2 rows at ts_event 1641009600000000001", "but counts 6"),
    ],
  ],
  late: passes("late@fills:3,2,4"),
  repeat: [1, 25].map((row) => [
    `repeat@fills:${row}`,
    failing("duplicate_row", `seq ${row}`, "Nothing is de-duplicated"),
  ]),
  malformed: unsendable("malformed@fills:12"),
  "wrong-type": unsendable("wrong-type@fills:12"),
  decimals: [
    [
      "decimals@fills:12",
      failing("value_out_of_range", 'fills.price of row seq 12 is "1.123456789012", which DECIMAL(18,9)'),
    ],
  ],
  number: unsendable("number@fills:12,quantity"),
  "missing-key": unsendable("missing-key@fills:12"),
  // a field without a name goes by its number; the segment keeps its bytes
  "unknown-field": [
    ["unknown-field@fills:12", { state: "COMPLETE", says: ["#1000"], holds: "world in Parquet" }],
  ],
  "out-of-order": [["out-of-order@fills:12", { state: "COMPLETE", holds: "world in Parquet" }]],
  "foreign-run": [["foreign-run@fills:25", failing("history_identity_conflict", "2022-01-01-foreign")]],
  "out-of-bounds": [
    ["out-of-bounds@fills:12", failing("history_identity_conflict", "outside the window asked for")],
  ],
  "facts-disagree": [
    [
      "facts-disagree@fills:2",
      {
        state: "INCOMPLETE",
        code: "incomplete",
        says: ["2 rows missing in [", "got 9 of 11"],
        holds: "world",
      },
    ],
    [
      "facts-disagree@fills:-2",
      {
        state: "UNVERIFIED",
        code: "unverified",
        says: ["2 more rows than the gateway counts in [", "got 12 instead of 10"],
        holds: "world",
      },
    ],
  ],
  "facts-ignore-bounds": passes("facts-ignore-bounds@fills", "facts-ignore-bounds@*"),
  "page-repeat": passes("page-repeat@fills:1"),
  "token-expired": passes("token-expired@fills:1", "token-expired@fills:1*3"),
  "page-too-large": passes("page-too-large@fills:1"),
  "connect-error": [
    ...passes("connect-error@fills:unavailable", "connect-error@fills:deadline_exceeded*3"),
    ...passes("connect-error@fills:internal", "connect-error@summary:unknown", "connect-error@fills:aborted"),
    ["connect-error@fills:data_loss*100", failing("server_error")],
  ],
  deadline: passes("deadline@fills", "deadline@storage"),
  "field-twice": [["field-twice@fills:12", failing("malformed_row")]],
  "compress-small": passes("compress-small@fills", "compress-small@*"),
};

/** Kinds that only asking again gets past: proof that the fault was met. No bytes at all are a whole, empty page. */
const isRetried = new Set<FaultKind>([
  ...(["cut-bytes", "stall", "rate-limit", "status-500", "status-502"] as const),
  ...(["page-repeat", "token-expired", "connect-error", "deadline"] as const),
]);

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
  expect(Object.keys(cases).sort()).toEqual(kindsOverRpc.map(({ kind }) => kind).sort());
  for (const [kind, list] of Object.entries(cases)) {
    expect(list.length).toBeGreaterThan(0);
    for (const [fault] of list) expect(parseFault(fault).kind).toBe(kind);
  }
});

for (const { kind, meaning } of kindsOverRpc) {
  describe(`${kind}: ${meaning}`, () => {
    for (const [fault, outcome] of cases[kind as Kind]) {
      const ends = outcome.code === undefined ? outcome.state : `${outcome.state}, ${outcome.code}`;
      it(`${fault} over RPC ends ${ends}, and without it COMPLETE`, async () => {
        const dir = await mkdtemp(join(folder, "archive-"));
        const archived = await world.archive(dir, [fault], "rpc");
        await expectOutcome(archived, outcome);
        if (isRetried.has(kind)) expect(archived.retries).toBeGreaterThan(0);
        // what is proven is not asked for again while the run's version stands; anything else is made good
        if (outcome.state === "COMPLETE" || outcome.state === "ABSENT") return;
        await expectOutcome(await world.archive(dir, [], "rpc"), whole);
      });
    }
  });
}

it("a refusal of what the token may not do ends the job, for every other table would meet it", async () => {
  const dir = await mkdtemp(join(folder, "archive-"));
  await expect(world.archive(dir, ["connect-error@fills:permission_denied"], "rpc")).rejects.toMatchObject({
    code: "permission_denied",
  });
  await expectOutcome(await world.archive(dir, [], "rpc"), whole);
});
