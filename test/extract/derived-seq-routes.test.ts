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
/** A source whose routes all gave rows before, and larger answers than any here where it is said. */
const seen = (hasLarger = false) => {
  const largest = hasLarger ? { largest: { rows: 10_000, bytes: 10_000_000 } } : {};
  return new SeenSource({ routes: [...tableNames], empty: {}, ...largest });
};
const fillsAt = (list: readonly number[]) => rowsWithoutSeq(run, "fills", list.map(at));
const none = { from: false, to: false };

async function archived(rows: readonly ArrayRow[], manners: DerivedManners, hasLarger = false) {
  const tables = await TableWorld.create();
  const source = new DerivedSource(run, tablesOf({ fills: rows }), { times, ...manners });
  const { manifest } = await tables.archiveRun(source, { seen: seen(hasLarger) });
  return { tables, source, fills: latestView(manifest.tables.fills)! };
}

describe("a table whose route takes no time bounds", () => {
  const rows = inOrder([...fillsAt(hours(50)), ...fillsAt([10, 10, 10]), ...fillsAt([60, 60])]);

  it("is fetched whole and counted, and says so", async () => {
    for (const bounds of [none, { from: false, to: true }]) {
      const { tables, source, fills } = await archived(rows, { route: { bounds }, ties: "shuffled" });
      await using _tables = tables;
      expect(fills).toMatchObject({
        state: "COMPLETE",
        certificate: {
          proof: "counted",
          restsOn: ["the table as it came whole, for its route takes no time bounds"],
        },
      });
      await tables.expectRows("fills", numbered(rows));
      expect(source.asked).toHaveLength(1);
    }
  });

  it("is COMPLETE without counts where larger answers were seen, and nothing more when they were not", async () => {
    for (const hasLarger of [true, false]) {
      const { tables, fills } = await archived(rows, { route: { bounds: none }, literal: true }, hasLarger);
      await using _tables = tables;
      expect(fills).toMatchObject({
        state: hasLarger ? "COMPLETE" : "UNVERIFIED",
        certificate: { rows: rows.length },
      });
    }
  });

  it("is COMPLETE without counts where the gateway ends its pages itself, and says that these were by offset", async () => {
    const manners = { route: { bounds: none, pages: "offset" }, literal: true } as const;
    const { tables, fills } = await archived(rows, manners);
    await using _tables = tables;
    expect(fills).toMatchObject({
      state: "COMPLETE",
      certificate: {
        proof: "exhausted",
        restsOn: [
          "the table as it came whole, for its route takes no time bounds",
          "pages that the gateway ended itself",
          "pages by offset, each of which began with the last row of the one before",
        ],
      },
    });
  });

  it("is never COMPLETE where a cap cut it", async () => {
    for (const literal of [true, false]) {
      for (const capKeeps of ["oldest", "newest"] as const) {
        const { tables, fills } = await archived(rows, {
          route: { bounds: none },
          literal,
          cap: 40,
          capKeeps,
        });
        await using _tables = tables;
        expect(fills.state).not.toBe("COMPLETE");
      }
    }
  });

  it("is not COMPLETE where rows lie outside of what is counted", async () => {
    const { tables, source } = await archived(rows, { route: { bounds: none } });
    await using _tables = tables;
    for (const beyond of [-1, 70]) {
      const more = await TableWorld.create();
      await using _more = more;
      const others = new DerivedSource(run, tablesOf({ fills: inOrder([...rows, ...fillsAt([beyond])]) }), {
        times,
        route: { bounds: none },
      });
      // its counts leave a row out, and so do the times that they name
      others.facts = source.facts.bind(source);
      const { manifest } = await more.archiveRun(others, { seen: seen() });
      expect(manifest.tables.fills!.state).not.toBe("COMPLETE");
    }
  });

  it("goes on after a kill with what is missing, each time by all of it", async () => {
    await using tables = await TableWorld.create();
    const source = new DerivedSource(run, tablesOf({ fills: rows }), {
      times,
      route: { bounds: none, takesLimit: false },
      ties: "shuffled",
    });
    await tables.archiveUntil(source, "segment-journalled", 3);
    await tables.archiveUntil(source, "segment-journalled", 2);
    const { manifest, resumedSegments } = await tables.archiveRun(source, { seen: seen() });
    expect(resumedSegments).toBeGreaterThan(4);
    expect(manifest.tables.fills!.state).toBe("COMPLETE");
    await tables.expectRows("fills", numbered(rows));
  });

  it("has no rows where it is asked whole and gives none, if it gave rows of others before", async () => {
    const { tables, fills } = await archived([], { route: { bounds: none }, literal: true });
    await using _tables = tables;
    // no other table has rows, and the gateway knows no other run
    expect(fills).toMatchObject({
      state: "COMPLETE",
      certificate: {
        rows: 0,
        restsOn: ["no rows from a route that takes no time bounds", "its route, which gave rows before"],
      },
    });
  });

  it("is not said to have no rows where all that came lie behind the horizon, and a cap may have left out others", async () => {
    for (const order of ["ascending", "descending"] as const) {
      const manners = {
        route: { bounds: none, order },
        literal: true,
        final: false,
        capKeeps: "newest",
      } as const;
      const all = inOrder(fillsAt(hours(80)));
      const opened = async (rows: readonly ArrayRow[], cap: number, hasLarger: boolean) => {
        await using tables = await TableWorld.create();
        const source = new DerivedSource(run, tablesOf({ fills: rows }), { times, ...manners, cap });
        source.storageVersion = undefined;
        const job = { seen: seen(hasLarger), clock: () => at(50) };
        return latestView((await tables.archiveRun(source, job)).manifest.tables.fills!)!;
      };
      expect(await opened(all, 20, false)).toMatchObject({ state: "UNVERIFIED", certificate: { rows: 0 } });
      const late = all.slice(-20);
      expect(await opened(late, 1000, true)).toMatchObject({ state: "OPEN", certificate: { rows: 0 } });
    }
  });

  it("is OPEN while the run goes on, by all of it each time, and never holds rows that changed", async () => {
    for (const literal of [false, true]) {
      await using tables = await TableWorld.create();
      const route = { bounds: none };
      let nights = 0;
      const night = async (now: readonly ArrayRow[], hour: number, final = false) => {
        nights++;
        const source = new DerivedSource(run, tablesOf({ fills: now }), {
          times,
          route,
          literal,
          final,
          ties: "shuffled",
        });
        source.storageVersion = undefined;
        const { manifest } = await tables.archiveRun(source, { seen: seen(true), clock: () => at(hour) });
        return manifest.tables.fills!;
      };
      const all = inOrder([...fillsAt(hours(80)), ...fillsAt([30, 30, 60, 60])]);
      const upTo = (hour: number) => all.filter(({ ts }) => ts <= at(hour));
      expect((await night(upTo(40), 41)).state).toBe("OPEN");
      await tables.expectRows("fills", numbered(upTo(40)));
      expect((await night(upTo(70), 71)).state).toBe("OPEN");
      await tables.expectRows("fills", numbered(upTo(70)));
      // a row in the past
      const late = inOrder([...all, ...fillsAt([30])]);
      const settled = await night(late, 200, true);
      if (settled.state === "COMPLETE") await tables.expectRows("fills", numbered(late));
      else expect(settled.attempt.outcome).not.toBe("ok");
      const again = await night(late, 300, true);
      expect([nights, again.state]).toEqual([4, "COMPLETE"]);
      await tables.expectRows("fills", numbered(late));
    }
  });
});

describe("a table whose route takes one bound, no limit, or no filters", () => {
  const rows = inOrder([...fillsAt(hours(50)), ...fillsAt([10, 10, 10]), ...fillsAt([60, 60])]);
  it.each<[string, DerivedManners["route"] & object]>([
    ["from alone", { bounds: { from: true, to: false } }],
    ["to alone", { bounds: { from: false, to: true } }],
    ["no limit", { takesLimit: false }],
    ["no filters", { filters: [] }],
    ["from alone, newest first", { bounds: { from: true, to: false }, order: "descending" }],
    ["from alone and no limit", { bounds: { from: true, to: false }, takesLimit: false }],
  ])("is archived, with %s", async (_, route) => {
    for (const literal of [false, true]) {
      const { tables, fills } = await archived(rows, { route, literal, ties: "shuffled" }, true);
      await using _tables = tables;
      expect([literal, fills.state]).toEqual([literal, "COMPLETE"]);
      await tables.expectRows("fills", numbered(rows));
    }
  });

  it("is got whole past a cap by `from` alone", async () => {
    for (const literal of [false, true]) {
      const manners = {
        route: { bounds: { from: true, to: false } },
        literal,
        cap: 9,
        ties: "shuffled",
      } as const;
      const { tables, fills } = await archived(rows, manners);
      await using _tables = tables;
      expect([literal, fills.state]).toEqual([literal, "COMPLETE"]);
      await tables.expectRows("fills", numbered(rows));
    }
  });
});

describe("a source that says which tables it has", () => {
  const described = { tables: ["fills"], none: ["orders"], by: "acme.yaml" } as const;
  it("is archived with those, and what it says it has not is ABSENT", async () => {
    await using tables = await TableWorld.create();
    const source = Object.assign(new DerivedSource(run, tablesOf({ fills: fillsAt(hours(3)) }), { times }), {
      described,
    });
    const { manifest } = await tables.archiveRun(source, { tables: undefined as never, seen: seen() });
    expect(Object.entries(manifest.tables).map(([name, table]) => [name, table.state])).toEqual([
      ["fills", "COMPLETE"],
      ["orders", "ABSENT"],
    ]);
    expect(manifest.tables.orders!.attempt.notes).toEqual([
      "the profile says that the gateway has no such history",
    ]);
    expect(source.asked.some(({ table }) => table === "orders")).toBe(false);
    const { changed } = await tables.archiveRun(source, { tables: undefined as never, seen: seen() });
    expect(changed).toBe(false);
    await expect(tables.archiveRun(source, { tables: ["bars"] })).rejects.toMatchObject({
      code: "invalid_argument",
      message: "the profile acme.yaml does not describe bars, so the gateway is not asked for it",
    });
  });

  it("is not believed where it counts rows of a table that it is said not to have", async () => {
    await using tables = await TableWorld.create();
    const rows = tablesOf({ fills: fillsAt(hours(3)), orders: rowsWithoutSeq(run, "orders", [at(1)]) });
    const source = Object.assign(new DerivedSource(run, rows, { times }), { described });
    const { manifest } = await tables.archiveRun(source, { tables: ["fills", "orders"], seen: seen() });
    expect(manifest.tables.orders!.state).not.toBe("ABSENT");
  });
});
