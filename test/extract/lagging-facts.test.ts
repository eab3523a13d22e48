// @module-tag slow
import { describe, expect, it } from "vitest";
import { defaultSettings } from "../../src/extract/run/archive-run.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const all = world({ fills: hours(70), orders: hours(70) });

/** A run of so many hours, whose facts of some tables are those of rows that `lacks` takes some from. */
function lagging(
  count: number,
  lacks: Partial<Record<TableName, (rows: readonly ArrayRow[]) => ArrayRow[]>>,
  manners: Manners = { final: false },
) {
  const until = (n: number) => new Map([...all].map(([name, rows]) => [name, rows.slice(0, n)] as const));
  const source = new ArraySource(run, until(count), manners);
  const known = new ArraySource(run, until(count), manners);
  for (const [name, lack] of Object.entries(lacks)) {
    known.tables.set(name as TableName, lack(known.tables.get(name as TableName)!));
  }
  source.facts = (...asked) => known.facts(...asked);
  return { source, known };
}

const without = (n: number) => (rows: readonly ArrayRow[]) => rows.toSpliced(n, 1);

describe("facts of a growing run that lag behind its rows", () => {
  it.each([
    ["count too few", { lag: "facts" }],
    ["count rows that do not come yet", { lag: "rows" }],
  ])("move the horizon of all tables back to the last window that agrees: they %s", async (_, { lag }) => {
    await using tables = await TableWorld.create();
    const { source, known } = lagging(60, { fills: without(55) });
    if (lag === "rows") [source.tables, known.tables] = [known.tables, source.tables];
    const { manifest } = await tables.archiveRun(source);
    const { horizon } = manifest;
    expect(BigInt(horizon!)).toBeGreaterThan(at(40));
    expect(BigInt(horizon!)).toBeLessThanOrEqual(at(55));
    for (const name of ["fills", "orders"] as const) {
      expect(manifest.tables[name]).toMatchObject({
        state: "OPEN",
        proven: { certificate: { until: horizon, proof: "counted" } },
        attempt: { outcome: "ok", error: null },
      });
      await tables.expectRows(name, source.rowsWithin(name, { to: BigInt(horizon!) }));
    }
    expect(manifest.tables.fills!.attempt.notes).toEqual([expect.stringContaining("do not agree yet from")]);
    expect(manifest.tables.orders!.attempt.notes).toEqual([]);
    // once they caught up, the horizon is where it would have been
    const { source: caughtUp } = lagging(70, {});
    const later = await tables.archiveRun(caughtUp);
    expect([later.manifest.state, later.manifest.horizon]).toEqual(["OPEN", (at(69) + 1n).toString()]);
    await tables.expectRows("fills", caughtUp.rowsWithin("fills", { to: at(69) + 1n }));
  });

  it("move it back within what came in one segment, night after night", async () => {
    await using tables = await TableWorld.create();
    const { segmentBytes, sliceRows } = defaultSettings;
    for (const count of [30, 50, 70]) {
      const { source } = lagging(count, { fills: without(count - 4) });
      const { manifest } = await tables.archiveRun(source, { settings: { segmentBytes, sliceRows } });
      expect([manifest.state, manifest.horizon]).toEqual(["OPEN", at(count - 4).toString()]);
      for (const name of ["fills", "orders"] as const)
        await tables.expectRows(name, all.get(name)!.slice(0, count - 4));
    }
  });

  it("move it back where those of the other transport alone lag", async () => {
    await using tables = await TableWorld.create();
    for (const count of [30, 50, 70]) {
      const { known } = lagging(count, { fills: without(count - 4) });
      const { source } = lagging(count, {});
      const otherFacts: ArraySource["facts"] = (...asked) => known.facts(...asked);
      const { manifest } = await tables.archiveRun(Object.assign(source, { otherFacts }));
      expect([manifest.state, manifest.horizon]).toEqual(["OPEN", at(count - 4).toString()]);
      await tables.expectRows("orders", all.get("orders")!.slice(0, count - 4));
    }
  });

  it("move it back where they end earlier than those of other tables, too", async () => {
    await using tables = await TableWorld.create();
    const { source } = lagging(60, { fills: (rows) => rows.slice(0, 50) });
    const { manifest } = await tables.archiveRun(source);
    const { horizon, state } = manifest;
    expect(state).toBe("OPEN");
    expect(BigInt(horizon!)).toBeLessThanOrEqual(at(50));
    await tables.expectRows("fills", source.rowsWithin("fills", { to: BigInt(horizon!) }));
    await tables.expectRows("orders", source.rowsWithin("orders", { to: BigInt(horizon!) }));
  });

  it("are an alarm where they never catch up with what lies behind the proven rows", async () => {
    await using tables = await TableWorld.create();
    const { source } = lagging(60, { fills: without(55) });
    const { manifest: first } = await tables.archiveRun(source);
    const { source: still } = lagging(70, { fills: without(55) });
    const { manifest } = await tables.archiveRun(still);
    expect(manifest.tables.fills).toMatchObject({
      state: "UNVERIFIED",
      proven: { state: "OPEN", certificate: { until: first.horizon } },
      attempt: { error: { code: "unverified" } },
    });
    expect(manifest.horizon).toBe((at(69) + 1n).toString());
    expect(manifest.tables.orders!.proven!.certificate!.until).toBe((at(69) + 1n).toString());
  });

  it("are an alarm where the very first rows disagree", async () => {
    await using tables = await TableWorld.create();
    const { source } = lagging(60, {});
    source.tables.set("fills", without(1)(source.tables.get("fills")!));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ state: "INCOMPLETE", proven: null });
    expect(manifest.tables.orders!.state).toBe("OPEN");
  });

  it("take what an earlier window lacks for no reason to trust a later one that makes up for it", async () => {
    await using tables = await TableWorld.create();
    const { source, known } = lagging(60, { fills: without(50) });
    source.tables.set("fills", without(25)(source.tables.get("fills")!));
    const { manifest } = await tables.archiveRun(source);
    expect(BigInt(manifest.horizon!)).toBeLessThanOrEqual(at(25));
    const rows = source.rowsWithin("fills", { to: BigInt(manifest.horizon!) });
    expect(rows).toEqual(known.rowsWithin("fills", { to: BigInt(manifest.horizon!) }));
    await tables.expectRows("fills", rows);
  });
});

describe("facts of a finished run that lag behind its rows", () => {
  it("are asked for again after a pause", async () => {
    await using tables = await TableWorld.create();
    const { source, known } = lagging(60, { fills: without(55) }, {});
    const rounds: string[] = [];
    const onNote = (text: string) => rounds.push(text);
    const facts = source.facts;
    // as long as the rounds go on they lag
    source.facts = async (ref, bounds, ...rest) => {
      if (rounds.length === 2 && bounds.from === undefined) {
        const answer = await facts(ref, bounds, ...rest);
        known.tables = new Map(source.tables);
        return answer;
      }
      return await facts(ref, bounds, ...rest);
    };
    expect((await tables.archiveRun(source, { onNote })).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("leave it UNVERIFIED where they stay so, after no longer than rows are waited for", async () => {
    await using tables = await TableWorld.create();
    const { source } = lagging(60, { fills: without(55) }, {});
    const settings = { factsPauseNs: 3_600_000_000_000n, settleNs: 20_000_000n };
    const { manifest } = await tables.archiveRun(source, { settings });
    expect(manifest.tables.fills!.attempt.outcome).toBe("UNVERIFIED");
  });

  it("leave no row out where they count none of a table on a later night, and others go on", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(lagging(40, {}).source);
    const { source } = lagging(60, { fills: (rows) => rows.slice(0, 40) });
    const { manifest } = await tables.archiveRun(source);
    const { until } = manifest.tables.fills!.proven!.certificate!;
    await tables.expectRows("fills", source.rowsWithin("fills", { to: BigInt(until!) }));
  });
});
