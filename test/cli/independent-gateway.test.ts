// @module-tag slow
import { describe, expect, test } from "vitest";
import { tableNames } from "../../src/model/profile/table.ts";
import {
  expectArchivedThroughChanges,
  expectOtherRunRefused,
  IndependentArchive,
} from "../fixtures/source/independent-archive.ts";

// test/all/end-to-end-independent.test.ts has more gateways
describe.each([
  ["facts and versions, and answers of 50 rows", { facts: true, cap: 50 }],
  [
    "nothing but rows, and empty answers for what it does not know",
    { facts: false, unknownRuns: "empty", noContent: true },
  ],
] as const)("a gateway that shares no code, with %s", (_, options) => {
  test("is archived while a run grows, ends, changes in place, is forgotten row by row, and gone", () =>
    expectArchivedThroughChanges(options));
});

test("a gateway that shares no code has another run under an id: it is refused, and what was proven stays", () =>
  expectOtherRunRefused({ facts: true, cap: 50 }));

test("a table that a gateway refuses costs that table alone, and is ABSENT where its route and the facts say so", async () => {
  await using archived = await IndependentArchive.open({ facts: true });
  const { refusals } = archived.gateway.run("run-2");
  refusals.set("orders", { status: 409, code: "history_unavailable" });
  refusals.set("fills", { status: 404, code: "resource_not_found" });
  const { status, runs } = await archived.archive("momentum-1/run-2");
  expect(status).not.toBe(0);
  const states = Object.entries(runs[0]!.tables).map(([table, { state }]) => [table, state]);
  const rest = tableNames.filter((table) => !refusals.has(table)).map((table) => [table, "COMPLETE"]);
  const expected = { ...Object.fromEntries(rest), orders: "ABSENT", fills: "INCOMPLETE" };
  expect(Object.fromEntries(states)).toEqual(expected);
  refusals.delete("fills");
  expect((await archived.archive("momentum-1/run-2")).status).toBe(0);
});

test("row checksums of a gateway that shares no code prove rows, also those that grew and changed", async () => {
  await using archived = await IndependentArchive.open({ facts: true });
  const growing = archived.gateway.run("run-2");
  growing.growTo(growing.at(600));
  const hashed = ["momentum-1/run-2", "--require", "hashed"];
  expect(await archived.archive(...hashed)).toMatchObject({ status: 0, states: { "run-2": "OPEN" } });
  growing.finish();
  growing.alter("bars", 3, { close: "777" });
  const { status, runs } = await archived.archive(...hashed);
  expect(status).toBe(0);
  const proofs = Object.values(runs[0]!.tables).map(({ proof }) => proof);
  expect(proofs).toEqual(tableNames.map(() => "hashed"));
  expect(await archived.held("run-2")).toEqual(archived.lines("run-2"));
});
