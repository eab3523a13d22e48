import { describe, expect, test } from "vitest";
import { ProofBench, type Transport } from "../fixtures/proof/proof-bench.ts";
import { proofWorlds } from "../fixtures/proof/proof-worlds.ts";

/** What cannot occur, and why. */
interface Never {
  readonly never: string;
}
const never = (why: string): Never => ({ never: why });

/** State and proof of the table, the rows of it that readers show, and the command's exit status. */
type Cell = string | Never;
type Cells = Cell | Readonly<Record<Transport, Cell>>;

/** Worlds by what the gateway has or does; then what comes of them with storage facts, and without. */
// biome-ignore format: it is read by its columns
const table: readonly (readonly [world: string, withFacts: Cells, without: Cells])[] = [
  ["rows one after another",                           "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["several rows a timestamp",                         "COMPLETE counted, 60 shown, exit 0",   "COMPLETE exhausted, 60 shown, exit 0"],
  ["a single row",                                     "COMPLETE counted, 1 shown, exit 0",    "COMPLETE exhausted, 1 shown, exit 0"],
  ["no rows, of a route that gave some before",        "COMPLETE counted, 0 shown, exit 0",    "COMPLETE exhausted, 0 shown, exit 0"],
  ["no rows, of a route that never gave any",          "COMPLETE counted, 0 shown, exit 0",    "UNVERIFIED, 0 shown, exit 4"],
  ["no rows, by the operator's word",                  "COMPLETE counted, 0 shown, exit 0",    "COMPLETE exhausted, 0 shown, exit 0"],
  ["rows, against the operator's word",                "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["a dead route",                                     "INCOMPLETE, 0 shown, exit 4",          "UNVERIFIED, 0 shown, exit 4"],
  ["a cap that keeps the oldest rows",                 "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["a cap that keeps the newest rows",                 "INCOMPLETE, 0 shown, exit 4",          "INCOMPLETE, 0 shown, exit 4"],
  ["a cap that varies",                                "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["a cap of bytes",                                   "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["a cap inside the last timestamp",                  "INCOMPLETE, 0 shown, exit 4",          "UNVERIFIED, 0 shown, exit 4"],
  ["one timestamp, and larger answers elsewhere",      "COMPLETE counted, 9 shown, exit 0",    "COMPLETE exhausted, 9 shown, exit 0"],
  ["one timestamp, and no larger answer",              "COMPLETE counted, 60 shown, exit 0",   "UNVERIFIED, 0 shown, exit 4"],
  ["ranges over 31 days refused",                      "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["ranges cut down to 31 days",                       "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["ranges cut down to an hour",                       "UNVERIFIED, 0 shown, exit 4",          "INCOMPLETE, 0 shown, exit 4"],
  ["the ends of int64 taken for no time",              "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["only the last hours without a beginning",          "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["a limit of one row refused",                       "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["facts one too low for ever",                       "UNVERIFIED, 0 shown, exit 4",          never("there are no facts")],
  ["facts that lag until the pause",                   "COMPLETE counted, 30 shown, exit 0",   never("there are no facts")],
  ["a version that moves with every look",             "COMPLETE counted, 30 shown, exit 0",   never("there are no versions")],
  ["rows changed under another version",               "COMPLETE counted, 30 shown, exit 0",   never("there are no versions")],
  ["409 history_unavailable",                          "ABSENT, 0 shown, exit 0",              "ABSENT, 0 shown, exit 0"],
  ["409 of a table that is counted",                   "INCOMPLETE, 0 shown, exit 9",          never("nothing counts it")],
  ["404 resource_not_found",                           "INCOMPLETE, 0 shown, exit 9",          "INCOMPLETE, 0 shown, exit 9"],
  ["413 limit_exceeded",                               "INCOMPLETE, 0 shown, exit 9",          "INCOMPLETE, 0 shown, exit 9"],
  ["a route that is not there",                        "INCOMPLETE, 0 shown, exit 9",          "INCOMPLETE, 0 shown, exit 9"],
  ["502 in the first night",                           "INCOMPLETE, 0 shown, exit 3",          "INCOMPLETE, 0 shown, exit 3"],
  ["502 once rows are proven",                         "INCOMPLETE, 30 shown, exit 3",         "INCOMPLETE, 30 shown, exit 3"],
  ["204 in place of an empty answer",                  { rest: "COMPLETE counted, 0 shown, exit 0", rpc: never("an answer of nothing is a message") },{ rest: "UNVERIFIED, 0 shown, exit 4", rpc: never("an answer of nothing is a message") }],
  ["storage facts that turned 404",                    "COMPLETE exhausted, 30 shown, exit 0", never("there were none")],
  ["foreign names in the facts",                       { rest: "nothing, exit 3", rpc: never("messages name no fields") },never("there are no facts")],
  ["a row that is none",                               "QUARANTINED, 0 shown, exit 4",         "QUARANTINED, 0 shown, exit 4"],
  ["a row that is none, accepted",                     "COMPLETE counted, 29 shown, exit 0",   "COMPLETE exhausted, 29 shown, exit 0"],
  ["a row of another run",                             "INCOMPLETE, 0 shown, exit 4",          "INCOMPLETE, 0 shown, exit 4"],
  ["a signed zero",                                    "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["rows in no order",                                 "COMPLETE counted, 30 shown, exit 0",   "INCOMPLETE, 0 shown, exit 4"],
  ["a growing run",                                    "OPEN counted, 30 shown, exit 0",       "OPEN exhausted, 30 shown, exit 0"],
  ["a growing run's second night",                     "OPEN counted, 45 shown, exit 0",       "OPEN exhausted, 45 shown, exit 0"],
  ["a late row of a growing run",                      "OPEN counted, 30 shown, exit 0",       "OPEN exhausted, 30 shown, exit 0"],
  ["final after it grew",                              "COMPLETE counted, 45 shown, exit 0",   "COMPLETE exhausted, 45 shown, exit 0"],
  ["going on after it was final",                      "OPEN counted, 45 shown, exit 0",       "OPEN exhausted, 45 shown, exit 0"],
  ["retention of a growing run",                       "OPEN counted, 45 shown, exit 0",       "OPEN exhausted, 45 shown, exit 0"],
  ["retention of a finished run's rows, all of them",  "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["loss in the middle of a growing run",              "UNVERIFIED, 30 shown, exit 4",         "UNVERIFIED, 30 shown, exit 4"],
  ["loss in the middle, accepted",                     "OPEN counted, 29 shown, exit 0",       "OPEN exhausted, 29 shown, exit 0"],
  ["gone after it was whole",                          "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["gone while it grew",                               "INCOMPLETE, 30 shown, exit 4",         "INCOMPLETE, 30 shown, exit 4"],
  ["gone while it grew, closed",                       "OPEN counted, 30 shown, exit 0",       "OPEN exhausted, 30 shown, exit 0"],
  ["another run under its id",                         "INCOMPLETE, 30 shown, exit 4",         "INCOMPLETE, 30 shown, exit 4"],
  ["the same rows at another address",                 "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["retention at another address",                     "COMPLETE counted, 30 shown, exit 0",   "COMPLETE exhausted, 30 shown, exit 0"],
  ["other rows under its id at another address",       "INCOMPLETE, 30 shown, exit 4",         "INCOMPLETE, 30 shown, exit 4"],
];

test("every world is in the table once", () => {
  expect(table.map(([world]) => world)).toEqual(Object.keys(proofWorlds));
});

describe.each(["rest", "rpc"] as const)("archive over %s comes to what the table says of", (transport) => {
  test.each(table)("%s", async (world, withFacts, without) => {
    const found: Record<string, Cell> = {};
    const wanted: Record<string, Cell> = {};
    for (const [name, cells] of Object.entries({ withFacts, without })) {
      const cell = typeof cells === "object" && "rest" in cells ? cells[transport] : cells;
      wanted[name] = cell;
      found[name] = typeof cell === "string" ? await outcomeOf(world, transport, name === "withFacts") : cell;
    }
    expect(found).toEqual(wanted);
  });
});

async function outcomeOf(world: string, transport: Transport, hasFacts: boolean): Promise<string> {
  await using bench = await ProofBench.create(transport, hasFacts);
  await proofWorlds[world]!(bench);
  return await bench.outcome();
}
