// @module-tag slow
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { at, hours, run, TableWorld } from "../fixtures/archive/table-world.ts";
import type { ArrayRow } from "../fixtures/source/array-source.ts";
import {
  type DerivedManners,
  DerivedSource,
  inOrder,
  numbered,
  rowsWithoutSeq,
  tablesOf,
} from "../fixtures/source/derived-source.ts";

const times = { started: at(0), ended: at(100) };
const seen = () => new SeenSource({ routes: [...tableNames], empty: {} });
/** So many rows at each of so many hours. */
const groups = (hoursOf: readonly number[], each: number, symbols?: string[]) =>
  rowsWithoutSeq(
    run,
    "fills",
    hoursOf.flatMap((hour) => Array<bigint>(each).fill(at(hour))),
    symbols,
  );

async function archived(rows: readonly ArrayRow[], manners: DerivedManners, nights = 1) {
  const tables = await TableWorld.create();
  const source = new DerivedSource(run, tablesOf({ fills: rows }), { times, ...manners });
  for (let night = 1; night < nights; night++) await tables.archiveRun(source, { seen: seen() });
  const { manifest } = await tables.archiveRun(source, { seen: seen(), settings: { fingerprint: true } });
  return { tables, source, manifest, fills: latestView(manifest.tables.fills)! };
}

describe("rows that come without seq", () => {
  it.each([
    ["by counts", {}],
    ["by two passes", { literal: true }],
  ])("are numbered in their timestamp by their bytes, however ties come, proven %s", async (_, manners) => {
    const rows = inOrder([...groups(hours(12), 1), ...groups([3, 7, 20], 9), ...groups([30, 31], 1)]);
    const hashes = new Set<string>();
    for (const ties of ["steady", "shuffled"] as const) {
      const { tables, fills } = await archived(rows, { ...manners, ties });
      await using _tables = tables;
      expect(fills).toMatchObject({ state: "COMPLETE", certificate: { rows: rows.length } });
      await tables.expectRows("fills", numbered(rows));
      hashes.add(fills.certificate!.rowHash!.sum);
    }
    expect(hashes.size).toBe(1);
  });

  it("stay two where they are equal", async () => {
    const one = groups(hours(10), 2);
    const rows = inOrder([...one, ...one.slice(4, 8), ...groups([11], 1)]);
    for (const literal of [false, true]) {
      const { tables, fills } = await archived(rows, { literal, ties: "shuffled" });
      await using _tables = tables;
      expect(fills).toMatchObject({ state: "COMPLETE", certificate: { rows: rows.length } });
      await tables.expectRows("fills", numbered(rows));
    }
  });

  it("are no rows where they have one, as rows without one are none elsewhere", async () => {
    const rows = groups(hours(5), 1);
    rows[2] = { ...rows[2]!, line: rows[2]!.line.replace('"seq":""', '"seq":"3"') };
    const { tables, manifest } = await archived(rows, {});
    await using _tables = tables;
    expect(manifest.tables.fills!.state).not.toBe("COMPLETE");
  });

  it("are numbered over a timestamp larger than a segment, and cuts fall where they do in one go", async () => {
    // 3000 bytes are a segment's, as many as about seven rows take
    const rows = inOrder([...groups([1, 2], 3), ...groups([3], 40), ...groups([4, 5, 6], 3)]);
    const plain = await archived(rows, {});
    await using _plain = plain.tables;
    await plain.tables.expectRows("fills", numbered(rows));
    for (const cut of [1500, 9000, 17_000]) {
      const shuffled = await archived(rows, {
        ties: "shuffled",
        cuts: [cut, undefined, 4000],
        chunkBytes: 77,
      });
      await using _shuffled = shuffled.tables;
      await shuffled.tables.expectRows("fills", numbered(rows));
      const sizes = (of: typeof plain) => of.fills.segments.map(({ from, rows }) => `${from}:${rows}`);
      expect(sizes(shuffled)).toEqual(sizes(plain));
    }
  });

  it("equal those of an undisturbed job after kills", async () => {
    const rows = inOrder([...groups(hours(40), 2), ...groups([50], 30)]);
    for (const literal of [false, true]) {
      await using tables = await TableWorld.create();
      const source = new DerivedSource(run, tablesOf({ fills: rows }), { times, literal, ties: "shuffled" });
      for (const kill of [1, 2, 3]) await tables.archiveUntil(source, "segment-journalled", kill);
      const { manifest } = await tables.archiveRun(source, { seen: seen() });
      expect(manifest.tables.fills!.state).toBe("COMPLETE");
      await tables.expectRows("fills", numbered(rows));
    }
  });
});

describe("a cap on the rows of one answer, of rows without seq", () => {
  const eight = (hour: number, symbols?: string[]) => groups([hour], 8, symbols);
  const worlds: [string, (symbols?: string[]) => ArrayRow[]][] = [
    ["alone", (symbols) => eight(50, symbols)],
    ["last", (symbols) => inOrder([...groups([1, 2], 1), ...eight(50, symbols)])],
    [
      "in the middle",
      (symbols) => inOrder([...groups([1, 2], 1), ...eight(50, symbols), ...groups([60], 1)]),
    ],
    ["first", (symbols) => inOrder([...eight(50, symbols), ...groups([60, 61], 1)])],
  ];
  const ways: [string, DerivedManners][] = [
    ["with counts", {}],
    ["without counts", { literal: true }],
    ["with counts and filters that overlap", { filtersAre: "overlapping" }],
    ["without counts and with filters that overlap", { literal: true, filtersAre: "overlapping" }],
    ["with counts and no filters", { route: { filters: [] } }],
  ];
  for (const [where, world] of worlds) {
    for (const [way, manners] of ways) {
      it(`is never certified in a timestamp of eight that stands ${where}, ${way}`, async () => {
        for (const ties of ["steady", "shuffled"] as const) {
          const { tables, fills } = await archived(world(["A"]), { cap: 5, ties, ...manners });
          await using _tables = tables;
          expect(fills.state).not.toBe("COMPLETE");
        }
      });
    }
  }

  it("is got over by filters whose parts are apart, where rows are counted", async () => {
    for (const ties of ["steady", "shuffled"] as const) {
      const rows = worlds[2]![1](["A", "B"]);
      const { tables, fills } = await archived(rows, { cap: 5, ties });
      await using _tables = tables;
      expect(fills.state).toBe("COMPLETE");
      await tables.expectRows("fills", numbered(rows));
    }
  });

  it("is not got over by parts that add up and overlap", async () => {
    const rows = worlds[2]![1](["A", "B"]);
    const { tables, fills } = await archived(rows, { cap: 5, filtersAre: "overlapping" });
    await using _tables = tables;
    expect(fills.state).not.toBe("COMPLETE");
  });
});

describe("rows of one instant in the order of their arrival", () => {
  const rows = inOrder(groups(hours(12), 4));
  it.each([
    ["by counts", {}],
    ["by two passes", { literal: true }],
  ])("are proven where they come in the same order again, %s", async (_, manners) => {
    const { tables, fills } = await archived(
      [...rows].reverse().sort((a, b) => Number(a.ts - b.ts)),
      {
        ...manners,
        route: { ties: "arrival" },
      },
    );
    await using _tables = tables;
    expect(fills.state).toBe("COMPLETE");
  });

  it.each([
    ["by counts", {}],
    ["by two passes", { literal: true }],
  ])("are not proven where they come in another, %s", async (_, manners) => {
    const { tables, fills } = await archived(rows, {
      ...manners,
      ties: "shuffled",
      route: { ties: "arrival" },
    });
    await using _tables = tables;
    expect(fills.state).toBe("UNVERIFIED");
  });
});
