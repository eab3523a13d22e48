// @module-tag slow
import { describe, expect, it } from "vitest";
import { isSameBeginning } from "../../src/extract/run/same-beginning.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const rows = world({ fills: hours(30), bars: hours(30), equity: hours(30) });
const only = (...names: TableName[]) => new Map(names.map((name) => [name, [...rows.get(name)!]]));

/** The same run at an address that the archive does not know. */
const elsewhere = (tables: Map<TableName, ArrayRow[]>, manners: Manners = {}) =>
  Object.assign(new ArraySource(run, tables, manners), { label: "http://elsewhere/api/v1" });

/** What becomes of the fills of a run of these tables at another address. */
async function moved(names: TableName[], there: Map<TableName, ArrayRow[]>) {
  const tables = await TableWorld.create();
  await tables.archiveRun(new ArraySource(run, only(...names)));
  const source = elsewhere(there);
  const { manifest, changed } = await tables.archiveRun(source, { tables: names });
  return { tables, source, manifest, changed };
}

const withRows = (
  tables: Map<TableName, ArrayRow[]>,
  name: TableName,
  change: (rows: ArrayRow[]) => ArrayRow[],
) => new Map(tables).set(name, change(tables.get(name)!));

/** The same rows with another price, or another amount of cash. */
const altered = (all: readonly ArrayRow[]) =>
  all.map((row) => ({ ...row, line: row.line.replace(/"(price|cash)":"[^"]*"/, '"$1":"777"') }));

describe("a run at an address that is not known", () => {
  // caught by: market data that vouches for a gateway all of whose other rows differ
  it.each(["fills", "equity"] as const)(
    "is another one where every row of %s differs, whatever bars say",
    async (name) => {
      const there = withRows(only(name, "bars"), name, altered);
      const { tables, manifest } = await moved([name, "bars"], there);
      await using _tables = tables;
      expect(manifest.tables[name]).toMatchObject({
        proven: { state: "COMPLETE" },
        attempt: { error: { code: "history_identity_conflict" } },
      });
      await tables.expectRows(name, rows.get(name)!);
    },
  );

  // caught by: market data that never decides
  it("is the same by its bars where no other table has rows", async () => {
    const { tables, manifest } = await moved(["bars"], only("bars"));
    await using _tables = tables;
    expect(manifest.tables.bars!.attempt).toMatchObject({ outcome: "ok", error: null });
  });

  // caught by: one given row that vouches for all others, and a version that is the same
  it.each([
    [0, "first"],
    [14, "middle"],
    [29, "last"],
  ])(
    "is the same by one of three rows (row %i, the %s), and then all that differ are fetched",
    async (index) => {
      const there = withRows(only("fills"), "fills", (all) =>
        all.map((row, i) => (i === index ? row : repriced([row])[0]!)),
      );
      const { tables, manifest } = await moved(["fills"], there);
      await using _tables = tables;
      expect(manifest.state).toBe("COMPLETE");
      await tables.expectRows("fills", there.get("fills")!);
      // its address is known from then on
      const again = await tables.archiveRun(elsewhere(there));
      expect(again.changed).toBe(false);
    },
  );

  // caught by: stale rows of a run that goes on, kept until its end because counts agree
  it("is the same by one of three rows while it goes on, too, and all that differ are fetched", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(new ArraySource(run, only("fills"), { final: false }));
    const there = withRows(only("fills"), "fills", (all) =>
      all.map((row, i) => (i === 14 ? row : repriced([row])[0]!)),
    );
    expect((await tables.archiveRun(elsewhere(there, { final: false }))).manifest.state).toBe("OPEN");
    await tables.expectRows("fills", there.get("fills")!);
  });

  // caught by: rows that retention took, counted as rows that another gateway lacks
  it("is the same, and not streamed again, by the rows that retention left", async () => {
    const there = withRows(only("fills"), "fills", (all) => all.slice(20));
    const { tables, manifest } = await moved(["fills"], there);
    await using _tables = tables;
    expect(manifest.tables.fills!.attempt).toMatchObject({ outcome: "ok", error: null });
    const { rows: kept, restsOn } = manifest.tables.fills!.proven!.certificate!;
    expect(kept).toBe(30);
    expect(restsOn.join()).not.toMatch(/streamed/);
  });

  // caught by: a first table that retention took whole, taken for another gateway's
  it("is the same by its equity where retention took all fills, and another where that differs, too", async () => {
    const lapsed = withRows(only("fills", "equity"), "fills", () => []);
    const { tables, manifest } = await moved(["fills", "equity"], lapsed);
    await using _tables = tables;
    expect(manifest.tables.equity!.attempt.error).toBeNull();
    const other = withRows(lapsed, "equity", altered);
    const refused = await moved(["fills", "equity"], other);
    await using _refused = refused.tables;
    expect(refused.manifest.tables.equity!.attempt.error?.code).toBe("history_identity_conflict");
  });
});

describe("a beginning", () => {
  const fine = 1_640_995_205_906_971_170n;

  // caught by: an honest gateway that is another each night since it tells its times in seconds
  it.each([
    ["whole seconds", 1_640_995_205_000_000_000n],
    ["whole seconds, rounded up", 1_640_995_206_000_000_000n],
    ["milliseconds", 1_640_995_205_906_000_000n],
    ["microseconds", 1_640_995_205_906_971_000n],
  ])("is the same in %s", (_, coarse) => {
    expect([isSameBeginning(fine, coarse), isSameBeginning(coarse, fine)]).toEqual([true, true]);
  });

  it.each([
    ["a second later", 1_640_995_207_000_000_000n],
    ["a second before", 1_640_995_204_000_000_000n],
    ["another millisecond", 1_640_995_205_904_000_000n],
    ["as fine, and a nanosecond later", fine + 1n],
  ])("is another where it is %s", (_, other) => {
    expect([isSameBeginning(fine, other), isSameBeginning(other, fine)]).toEqual([false, false]);
  });

  it("in whole seconds is another than the next second", () => {
    expect(isSameBeginning(1_640_995_205_000_000_000n, 1_640_995_206_000_000_000n)).toBe(false);
  });

  // caught by: a comparison that knows units beside one that does not
  it("in whole seconds leaves a run up to date", async () => {
    await using tables = await TableWorld.create();
    const times = { started: fine, ended: fine + 10n };
    const told = { ...times, started: fine - (fine % 1_000_000_000n) };
    await tables.archiveRun(new ArraySource(run, only("fills"), { times }));
    const again = await tables.archiveRun(new ArraySource(run, only("fills"), { times: told }), {
      isManifestEnough: true,
    });
    expect(again).toMatchObject({ changed: false, warnings: [] });
    expect(again.manifest.state).toBe("COMPLETE");
  });
});
