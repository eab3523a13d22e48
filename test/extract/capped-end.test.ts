import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { knownSource } from "../../src/archive/sources.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { type TableName, tableNames } from "../../src/model/profile/table.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";

const times = { started: at(0), ended: at(100) };
const seen = () => new SeenSource({ routes: [...tableNames], empty: {} });

/** Rows of one timestamp that no filter tells apart. */
const alike = (name: TableName, count: number, hour = 100): ArrayRow[] =>
  rowsAt(run, name, Array<bigint>(count).fill(at(hour)), [""]).map((row) => ({
    ...row,
    line: row.line.replace(/"(resource_key|account|portfolio|venue)":"[^"]*"/g, '"$1":"same"'),
  }));

async function archived(rows: ReturnType<typeof world>, manners: Manners, pages = false) {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, rows, { literal: true, times, ...manners });
  if (pages) {
    const uncapped = new ArraySource(run, rows, { times });
    Object.assign(source, { pagedRows: uncapped.rows.bind(uncapped) });
  }
  const { manifest } = await tables.archiveRun(source, { seen: seen() });
  return manifest.tables;
}

describe("a table that is one timestamp of many rows, which nothing counts", () => {
  it("is COMPLETE where other tables of the job gave larger answers, whichever comes first", async () => {
    for (const others of [world({ bars: hours(300) }), world({ equity: [1], bars: hours(300) })]) {
      const rows = new Map([["metrics", alike("metrics", 140)] as const, ...others]);
      expect((await archived(rows, {})).metrics!.state).toBe("COMPLETE");
    }
  });

  it("is UNVERIFIED where no answer was larger by a quarter, with its rows kept", async () => {
    const rows = new Map([["metrics", alike("metrics", 140)] as const, ...world({ bars: hours(150) })]);
    const { metrics } = await archived(rows, {});
    expect(latestView(metrics)).toMatchObject({
      state: "UNVERIFIED",
      error: { code: "unverified" },
      certificate: { rows: 140 },
    });
  });

  it("is COMPLETE where the source gave larger answers to another command, and no cap shows now", async () => {
    const small = new Map([["metrics", alike("metrics", 140)] as const]);
    for (const cap of [undefined, 100]) {
      await using tables = await TableWorld.create();
      const large = { ...run, runId: "large" };
      const whole = new ArraySource(large, new Map([["bars", rowsAt(large, "bars", hours(300).map(at))]]), {
        literal: true,
        times,
      });
      await tables.archiveRun(whole, { run: large });
      expect(await knownSource(tables.archive, whole.label)).toMatchObject({ largest: { rows: 300 } });
      // fills that go on behind a timestamp that the cap cuts show the cap
      const fills = [...alike("fills", 140, 50), ...alike("fills", 1)];
      const rows = new Map([...small, ...(cap === undefined ? [] : [["fills", fills] as const])]);
      const later = new ArraySource(run, rows, {
        literal: true,
        times,
        ...(cap === undefined ? {} : { cap }),
      });
      const { manifest } = await tables.archiveRun(later);
      expect(manifest.tables.metrics!.state).toBe(cap === undefined ? "COMPLETE" : "UNVERIFIED");
    }
  });

  it("is UNVERIFIED where answers were larger in rows and not in bytes", async () => {
    const rows = new Map([["metrics", alike("metrics", 60)] as const, ...world({ equity: hours(100) })]);
    const long = rows
      .get("metrics")!
      .map((row) => ({ ...row, line: row.line.replace('"same"', `"${"s".repeat(9000)}"`) }));
    rows.set("metrics", long);
    expect((await archived(rows, {})).metrics!.state).toBe("UNVERIFIED");
  });

  it("is not COMPLETE where a cap cut it", async () => {
    const rows = new Map([["metrics", alike("metrics", 140)] as const, ...world({ bars: hours(300) })]);
    for (const manners of [{ cap: 100 }, { capBytes: 20_000 }]) {
      expect((await archived(rows, manners)).metrics!.state).toBe("UNVERIFIED");
    }
  });

  it("is COMPLETE where pages end behind the same rows, and INCOMPLETE where they bring more", async () => {
    const rows = new Map([["metrics", alike("metrics", 140)] as const]);
    expect((await archived(rows, {}, true)).metrics!.state).toBe("COMPLETE");
    expect(latestView((await archived(rows, { cap: 100 }, true)).metrics)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "timestamp_capped" },
    });
  });

  it("is INCOMPLETE where a part by a filter brings more, and not COMPLETE where the parts bring the same", async () => {
    const rows = new Map([
      ["fills", rowsAt(run, "fills", Array<bigint>(140).fill(at(9)), ["A", "B", "C"])] as const,
    ]);
    expect((await archived(rows, {})).fills!.state).toBe("UNVERIFIED");
    expect(latestView((await archived(rows, { cap: 100 })).fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "timestamp_capped" },
    });
  });
});

describe("a last timestamp behind others, which nothing counts", () => {
  const behind = (ahead: number, last: number) =>
    new Map<TableName, ArrayRow[]>([
      ["fills", [...rowsAt(run, "fills", hours(ahead).map(at)), ...alike("fills", last)]],
    ]);

  it("is whole where an answer held it with others", async () => {
    expect((await archived(behind(30, 20), {})).fills!.state).toBe("COMPLETE");
    expect((await archived(behind(30, 20), { cap: 22 })).fills!.state).toBe("COMPLETE");
  });

  it("is found behind an answer that was shorter than the one before: a cap need not be one of rows", async () => {
    for (const manners of [{ cap: 40, capKeeps: "varying" }, { capBytes: 9000 }] as const) {
      const { fills } = await archived(world({ fills: hours(100), bars: hours(100) }), manners);
      expect(latestView(fills)).toMatchObject({ state: "COMPLETE", certificate: { rows: 100 } });
    }
  });

  it("is not COMPLETE where each answer ended in it", async () => {
    expect((await archived(behind(30, 150), { cap: 100 })).fills!.state).not.toBe("COMPLETE");
    expect((await archived(behind(30, 150), { cap: 100, capKeeps: "varying" })).fills!.state).not.toBe(
      "COMPLETE",
    );
  });

  it("is not COMPLETE where its route alone has a cap, however large the answers of other tables are", async () => {
    const others = world({ bars: hours(300) });
    const capped = async (rows: ArrayRow[], cap: number) => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, new Map([["equity", rows] as const, ...others]), {
        literal: true,
        times,
      });
      const short = new ArraySource(run, source.tables, { ...source.manners, cap });
      const whole = source.rows.bind(source);
      source.rows = (request) => (request.table === "equity" ? short.rows(request) : whole(request));
      return (await tables.archiveRun(source, { seen: seen() })).manifest.tables;
    };
    const ahead = rowsAt(run, "equity", hours(39).map(at));
    const behindOthers = await capped([...ahead, ...alike("equity", 15)], 10);
    expect(behindOthers).toMatchObject({ equity: { state: "UNVERIFIED" }, bars: { state: "COMPLETE" } });
    const ofTwo = await capped([...alike("equity", 4, 99), ...alike("equity", 8)], 6);
    expect(ofTwo.equity!.state).toBe("UNVERIFIED");
    // the answers of the route itself speak for it
    const held = await capped([...ahead, ...alike("equity", 5)], 10);
    expect(held.equity!.state).toBe("COMPLETE");
  });

  it("is not COMPLETE by answers before this command where another table shows a cap after it was read", async () => {
    const metrics = alike("metrics", 60);
    const archivedWith = async (more: ReturnType<typeof world>) => {
      await using tables = await TableWorld.create();
      const rows = new Map([["metrics", metrics] as const, ...more]);
      const source = new ArraySource(run, rows, { literal: true, times, cap: 40 });
      const largest = { rows: 100_000, bytes: 100_000_000 };
      const remembered = new SeenSource({ routes: [...tableNames], empty: {}, largest });
      const { manifest } = await tables.archiveRun(source, { seen: remembered });
      return manifest.tables;
    };
    expect((await archivedWith(world({ orders: hours(100) }))).metrics!.state).toBe("UNVERIFIED");
  });
});
