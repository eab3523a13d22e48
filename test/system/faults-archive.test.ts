import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FaultKind, faultKinds, parseFault, type RpcFaultKind } from "../../src/faults/fault.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { worldRun } from "../fixtures/archive/archived-world.ts";
import {
  absent,
  aside,
  drifted,
  expectOutcome,
  FaultyWorld,
  failing,
  fills,
  type Outcome,
  whole,
} from "../fixtures/archive/fault-outcome.ts";

interface Case {
  readonly fault: string;
  readonly facts: Outcome;
  readonly literal: Outcome;
}

const both = (fault: string, outcome: Outcome): Case => ({ fault, facts: outcome, literal: outcome });
const passes = (...faults: string[]) => faults.map((fault) => both(fault, whole));
type RestFaultKind = Exclude<FaultKind, RpcFaultKind>;
const restFaultKinds = faultKinds.filter(({ only }) => only !== "rpc");

/** Every kind of fault, so that a new kind without an expectation does not compile, and fails below. */
const cases: Record<RestFaultKind, readonly Case[]> = {
  cut: passes("cut@fills:0", "cut@fills:10*2"),
  "cut-clean": [
    ...passes("cut-clean@fills:0", "cut-clean@fills:10*4"),
    {
      fault: "cut-clean@fills:0*4",
      facts: whole,
      // an empty answer every time, of a route that never gave a row, proves nothing to whoever has no facts
      literal: { state: "UNVERIFIED", code: "unverified", holds: "nothing" },
    },
  ],
  "cut-bytes": passes("cut-bytes@fills:0", "cut-bytes@fills:3000"),
  "cut-bytes-clean": passes("cut-bytes-clean@fills:0", "cut-bytes-clean@fills:3000"),
  stall: passes("stall@fills:3"),
  delay: passes("delay@fills:50", "delay@summary:50*2"),
  "rate-limit": passes("rate-limit@fills:0*2", "rate-limit@summary:0*2"),
  "status-500": passes("status-500@fills*2", "status-500@summary*2"),
  "status-502": passes("status-502@fills*2", "status-502@instances*2"),
  "status-409": [
    both("status-409@fills", failing("history_identity_conflict")),
    both("status-409@fills:history_incomplete", failing("incomplete")),
    {
      fault: "status-409@fills:history_unavailable",
      // facts that count rows contradict a route that has none
      facts: failing("history_unavailable"),
      literal: absent,
    },
  ],
  absent: [both("absent@fills", absent)],
  cap: passes("cap@fills:3"),
  "tie-cap": [
    {
      fault: "tie-cap@fills:5,6,4",
      // put together from the parts by symbol, which sum to the facts
      facts: { state: "COMPLETE", holds: "some" },
      literal: failing("timestamp_capped", "1641009600000000001", "cap"),
    },
    {
      fault: "tie-cap@fills:5,6,2",
      // no filter parts the rows finely enough
      facts: failing("incomplete", "gives 2 rows at ts_event 1641009600000000001", "but counts 6"),
      // without facts, two rows on one timestamp may already be all that the gateway gives
      literal: failing("timestamp_capped", "1640998800000000001"),
    },
  ],
  late: [
    {
      fault: "late@fills:3,2,4",
      facts: whole,
      literal: { state: "INCOMPLETE", code: "incomplete", says: ["two passes"], holds: "some" },
    },
  ],
  repeat: [1, 25].map((row) =>
    both(`repeat@fills:${row}`, failing("duplicate_row", `seq ${row}`, "Nothing is de-duplicated")),
  ),
  malformed: [1, 12, 25].map((row) => both(`malformed@fills:${row}`, aside(row, "where a key is expected"))),
  "wrong-type": [
    both("wrong-type@fills:1", aside(1, 'seq is the string \\"abc\\"')),
    both("wrong-type@fills:12", aside(12, 'seq is the string \\"abc\\"')),
    both("wrong-type@fills:12,ts_event", aside(12, "ts_event is the string")),
    {
      fault: "wrong-type@fills:25",
      facts: aside(25, "seq is the string"),
      // the last row has no key to be placed by, and no count says that it is the only one
      literal: failing("timestamp_capped"),
    },
    {
      fault: "wrong-type@fills:1,ts_event",
      facts: aside(1, "ts_event is the string"),
      // the first row has no time: the second pass, with the bounds the first one found, does not meet it
      literal: { state: "INCOMPLETE", code: "incomplete", says: ["25 and 24 rows"], holds: "some" },
    },
  ],
  decimals: [12].map((row) =>
    both(
      `decimals@fills:${row}`,
      failing(
        "value_out_of_range",
        `fills.price of row seq ${row} is "1.123456789012", which DECIMAL(18,9) cannot hold`,
        "--decimal fills.price=21,12",
      ),
    ),
  ),
  number: [
    both("number@fills:12,quantity", aside(12, "quantity is 11.3 where a decimal in a string is expected")),
  ],
  "missing-key": [
    both("missing-key@fills:12", aside(12, "field liquidity is missing")),
    both("missing-key@fills:2,seq", aside(2, "field seq is missing")),
  ],
  "unknown-field": [12].map((row) => both(`unknown-field@fills:${row}`, drifted)),
  "out-of-order": [12].map((row) => ({
    fault: `out-of-order@fills:${row}`,
    facts: { state: "COMPLETE", holds: "world in Parquet" },
    literal: failing("row_order", "no storage facts"),
  })),
  "foreign-run": [25].map((row) =>
    both(`foreign-run@fills:${row}`, failing("history_identity_conflict", "2022-01-01-foreign")),
  ),
  "out-of-bounds": [12].map((row) =>
    both(`out-of-bounds@fills:${row}`, failing("history_identity_conflict", "outside the window asked for")),
  ),
  "facts-disagree": [
    {
      fault: "facts-disagree@fills:2",
      facts: {
        state: "INCOMPLETE",
        code: "incomplete",
        says: ["2 rows missing in [", "got 9 of 11"],
        holds: "world",
      },
      literal: whole,
    },
    {
      fault: "facts-disagree@fills:-2",
      facts: {
        state: "UNVERIFIED",
        code: "unverified",
        says: ["2 more rows than the gateway counts in [", "got 12 instead of 10"],
        holds: "world",
      },
      literal: whole,
    },
  ],
  "facts-ignore-bounds": passes("facts-ignore-bounds@fills", "facts-ignore-bounds@*"),
};

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
  expect(Object.keys(cases).sort()).toEqual(restFaultKinds.map(({ kind }) => kind).sort());
  for (const [kind, list] of Object.entries(cases)) {
    expect(list.length).toBeGreaterThan(0);
    for (const { fault } of list) expect(parseFault(fault).kind).toBe(kind);
  }
});

for (const { kind, meaning } of restFaultKinds) {
  describe(`${kind}: ${meaning}`, () => {
    for (const { fault, ...outcomes } of cases[kind as RestFaultKind]) {
      for (const mode of ["facts", "literal"] as const) {
        const outcome = outcomes[mode];
        const ends = outcome.code === undefined ? outcome.state : `${outcome.state}, ${outcome.code}`;
        const how = mode === "facts" ? "with storage facts" : "from a literal gateway";
        it(`${fault} ${how} ends ${ends}, and without it COMPLETE`, async () => {
          const dir = await mkdtemp(join(folder, "archive-"));
          await expectOutcome(await world.archive(dir, [fault], mode), outcome);
          // what is proven is not asked for again while the run's version stands; anything else is made good
          if (outcome.state === "COMPLETE" || (outcome.state === "ABSENT" && mode === "facts")) return;
          await expectOutcome(await world.archive(dir, [], mode), whole);
        });
      }
    }
  });
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
    await expectOutcome(first, cases["facts-disagree"][0]!.facts);
    const second = await world.archive(dir, ["facts-disagree@fills:4", "foreign-run@fills:3"], "facts");
    expect(second.manifest.tables.fills!.state).toBe("INCOMPLETE");
    expect(await parquetLines(second.archive, worldRun, "fills")).toEqual(fills);
    await expectOutcome(await world.archive(dir, [], "facts"), whole);
  });
});
