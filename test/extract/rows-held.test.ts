// @module-tag slow
import { describe, expect, it } from "vitest";
import { shortfallOf } from "../../src/analytics/shortfall.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { exitOfRun } from "../../src/extract/run/exit-of-run.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { servedLines } from "../fixtures/archive/served-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const all = world({ fills: hours(60) }).get("fills")!;
const modes = [
  ["with facts", {}],
  ["without facts", { literal: true }],
] as const;

/** A source with these fills and a table of orders, which shows that the run is known. */
function giving(fills: readonly ArrayRow[], manners: Manners = {}) {
  const orders = world({ orders: hours(60) }).get("orders")!;
  const tables = new Map<TableName, ArrayRow[]>([
    ["fills", [...fills]],
    ["orders", orders],
  ]);
  return new ArraySource(run, tables, manners);
}

/** Drops the oldest fills once so many answers of their route were given. */
function forgetting(source: ArraySource, after: number, left: readonly ArrayRow[]): ArraySource {
  let answers = 0;
  const refuses: Manners["refuses"] = ({ table }) => {
    if (table === "fills" && ++answers > after) source.tables.set("fills", [...left]);
    return undefined;
  };
  source.manners = { ...source.manners, refuses };
  return source;
}

async function night(tables: TableWorld, source: ArraySource, require: "any" | "hashed" = "any") {
  const { manifest } = await tables.archiveRun(source, { settings: { require } });
  expect((await reportOf(tables.archive, run)).damaged).toBe(false);
  return { manifest, fills: manifest.tables.fills!, exit: exitOfRun(manifest, { tables: ["fills"] }) };
}

/** The hours of the fills that readers see, the same from segments and from Parquet. */
async function served(tables: TableWorld, allowIncomplete: boolean): Promise<number[]> {
  const hoursOf = (lines: readonly string[]) => lines.map((own) => all.findIndex(({ line }) => line === own));
  const [fromSegments, fromParquet] = await Promise.all(
    [false, true].map((fromParquet) => servedLines(tables, "fills", { allowIncomplete, fromParquet })),
  );
  expect(hoursOf(fromParquet!)).toEqual(hoursOf(fromSegments!));
  return hoursOf(fromSegments!);
}

describe.each(modes)("rows that came from a gateway %s, were not proven, and are gone there", (_, mode) => {
  it("stay for --allow-incomplete beside what is proven without them, and are told", async () => {
    await using tables = await TableWorld.create();
    const first = await night(tables, giving(all.slice(0, 33), mode), "hashed");
    expect(first.exit).not.toBe(0);
    expect(await served(tables, true)).toEqual(hours(33));

    const source = giving(all.slice(15, 33), mode);
    const { fills, manifest, exit } = await night(tables, source);
    expect(fills).toMatchObject({
      state: "COMPLETE",
      proven: { certificate: { rows: 18, gatewayFrom: at(15).toString(), first: { ts: at(15).toString() } } },
      attempt: { outcome: "ok", holding: { certificate: { rows: 15, proof: "none" } } },
    });
    const unknown = /^what came and went in \[2022-01-01(T00.*)?, 2022-01-01T15.*\) is not known$/;
    expect(fills.proven!.certificate!.restsOn.filter((ground) => unknown.test(ground))).toHaveLength(1);
    expect(fills.attempt.notes.join("; ")).toContain("15 rows");
    expect(exit).toBe(0);
    const report = await verifyRun(tables.archive, run, { duckdb: sharedDuckDB, deep: true });
    expect(report).toMatchObject({ damaged: false, unproven: false });
    expect(await served(tables, false)).toEqual(hours(18, 15));
    expect(await served(tables, true)).toEqual(hours(33));
    expect(shortfallOf([manifest], ["fills"], true).unproven).toMatchObject([{ table: "fills", rows: 33 }]);
    expect(shortfallOf([manifest], ["fills"], false)).toMatchObject({ withheld: [], behind: [] });

    // whole nights later, of a table that lapses, they are still there
    source.storageVersion = "2";
    source.tables.set("fills", all.slice(20, 33));
    await night(tables, source);
    expect(await served(tables, true)).toEqual(hours(33));
    expect(await served(tables, false)).toEqual(hours(18, 15));
    source.storageVersion = "3";
    source.tables.set("fills", []);
    expect((await night(tables, source)).exit).toBe(0);
    expect(await served(tables, true)).toEqual(hours(33));
    expect(await served(tables, false)).toEqual(hours(18, 15));
  });

  it("while they were read: what is left is proven that night or the next, and what came stays", async () => {
    for (const after of [1, 3, 5]) {
      await using tables = await TableWorld.create();
      const first = await night(tables, forgetting(giving(all.slice(0, 33), mode), after, all.slice(15, 33)));
      const [shown, came] = [await served(tables, false), await served(tables, true)];
      const source = giving(all.slice(15, 33), mode);
      source.storageVersion = "2";
      const { fills, exit } = await night(tables, source);
      expect([fills.state, exit]).toEqual(["COMPLETE", 0]);
      expect(await served(tables, false)).toEqual(first.exit === 0 ? shown : hours(18, 15));
      const now = await served(tables, true);
      expect(new Set(now)).toEqual(new Set([...came, ...hours(18, 15)]));
    }
  });

  it("outweigh an answer of none, kept or not: the table is UNVERIFIED", async () => {
    for (const after of [1, 2]) {
      await using tables = await TableWorld.create();
      const { exit } = await night(tables, forgetting(giving(all.slice(0, 33), mode), after, []));
      expect(exit).not.toBe(0);
      const came = await served(tables, true);
      for (const version of ["2", "3"]) {
        const source = giving([], mode);
        source.storageVersion = version;
        const { fills, exit } = await night(tables, source);
        expect([fills.state, fills.proven, exit]).toEqual(["UNVERIFIED", null, 4]);
      }
      const refuses: Manners["refuses"] = ({ table }) =>
        table === "fills" ? new RunvaultError("history_unavailable", "none") : undefined;
      const source = giving([], { ...mode, refuses });
      source.storageVersion = "4";
      expect((await night(tables, source)).fills.proven).toBe(null);
      expect(await served(tables, true)).toEqual(came);
    }
  });

  it("are not replaced by the fewer that a later attempt brings, which fails as well", async () => {
    await using tables = await TableWorld.create();
    await night(tables, giving(all.slice(0, 50), mode), "hashed");
    expect(await served(tables, true)).toEqual(hours(50));
    const refuses: Manners["refuses"] = ({ table, from, limit }) =>
      table === "fills" && limit !== 1 && from !== undefined && from >= at(22)
        ? new RunvaultError("server_error", "no luck")
        : undefined;
    const source = giving(all.slice(20, 50), { ...mode, refuses });
    source.storageVersion = "2";
    await night(tables, source);
    expect(await served(tables, true)).toEqual(hours(50));
    await night(tables, giving(all.slice(20, 50), mode));
    expect(await served(tables, false)).toEqual(hours(30, 20));
    expect(await served(tables, true)).toEqual(hours(50));
  });
});

it("rows of an answer out of order are told apart by their times, whether they were proven or not", async () => {
  const swapped = all.slice(0, 33).with(20, all[25]!).with(25, all[20]!);
  for (const require of ["hashed", "any"] as const) {
    await using tables = await TableWorld.create();
    const source = giving(swapped);
    const { manifest } = await tables.archiveRun(source, { settings: { require, sliceRows: 1000 } });
    const { segments } = latestView(manifest.tables.fills!);
    expect(
      segments.filter(({ sorted, from }) => !sorted && from === segments[0]!.from).length,
    ).toBeGreaterThan(1);
    source.tables.set("fills", swapped.slice(15));
    source.storageVersion = "2";
    expect((await night(tables, source)).exit).toBe(0);
    expect(await served(tables, false)).toEqual(require === "any" ? hours(33) : hours(18, 15));
    expect(await served(tables, true)).toEqual(hours(33));
  }
});
