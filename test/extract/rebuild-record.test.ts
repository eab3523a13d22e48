import { afterEach, beforeEach, expect, test } from "vitest";
import { openRecord, type RebuildRecord, removeRecord } from "../../src/extract/rebuild/rebuild-record.ts";
import { second, third } from "../fixtures/archive/rebuild-world.ts";
import { run, TableWorld } from "../fixtures/archive/table-world.ts";

let place: TableWorld;
beforeEach(async () => {
  place = await TableWorld.create();
});
afterEach(() => place[Symbol.asyncDispose]());

test("a rebuild that goes on leaves out what it rebuilt itself, and no run that others committed since", async () => {
  const scope = { runs: [], tables: undefined, tool: "test" };
  const open = (runs: RebuildRecord["runs"]) =>
    openRecord(place.archive, scope, { startedAt: "now", runs }, () => {});
  const begun = [
    { ...run, generation: 4 },
    { ...second, generation: 4 },
  ];
  expect((await open(begun)).resumed).toBe(false);
  const since = [
    { ...run, generation: 5 },
    { ...second, generation: 6 },
    { ...third, generation: 1 },
  ];
  const expected = [{ ...run, generation: 4 }, ...since.slice(1)];
  expect(await open(since)).toMatchObject({ resumed: true, record: { runs: expected } });
  // what was taken up is remembered: the next one does not take it up again
  const later = [since[0]!, { ...second, generation: 7 }, { ...third, generation: 2 }];
  expect((await open(later)).record.runs).toEqual(expected);
  await removeRecord(place.archive, scope);
  expect(await open(later)).toMatchObject({ resumed: false, record: { runs: later } });
});
