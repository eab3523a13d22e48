// @module-tag slow
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const failsBehind = (n: number) => ({
  refuses: ({ table, from }: { table: string; from?: bigint | undefined }) =>
    table === "fills" && from !== undefined && from > at(n)
      ? new RunvaultError("server_error", "no luck today")
      : undefined,
});

describe("a table that fails after it has been archived", () => {
  it("keeps what came before the failure, next to what was archived", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(200), orders: [1] });
    const source = new ArraySource(run, new Map(all), { final: false });
    source.tables.set("fills", all.get("fills")!.slice(0, 40));
    await tables.archiveRun(source);

    source.tables = all;
    source.manners = { final: false, ...failsBehind(170) };
    const failed = await tables.archiveRun(source);
    const fills = latestView(failed.manifest.tables.fills!);
    expect(fills).toMatchObject({ state: "INCOMPLETE", error: { code: "server_error" } });
    expect(fills.certificate).toMatchObject({ proof: "none", ended: "cut" });
    expect(fills.certificate!.rows).toBeGreaterThan(130);
    // readers of unfinished tables find all of it
    expect(fills.parquet.reduce((sum, { rows }) => sum + rows, 0)).toBe(fills.certificate!.rows);
    const { checks } = await reportOf(tables.archive, run);
    expect(checks.filter(({ level }) => level === "damaged")).toEqual([]);

    source.manners = { final: false };
    const { manifest, rows } = await tables.archiveRun(source);
    expect(manifest.state).toBe("OPEN");
    expect(rows).toBeLessThan(80);
    await tables.expectRows("fills", all.get("fills")!);
  });

  it("keeps it of a run that was finished meanwhile, too", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(200), orders: [1] });
    const source = new ArraySource(run, new Map(all), { final: false });
    source.tables.set("fills", all.get("fills")!.slice(0, 40));
    await tables.archiveRun(source);
    source.tables = all;
    source.storageVersion = "2";
    source.manners = failsBehind(150);
    const failed = await tables.archiveRun(source, { settings: { fingerprint: true } });
    expect(failed.manifest.tables.fills!.state).toBe("INCOMPLETE");
    const { checks } = await reportOf(tables.archive, run);
    expect(checks.filter(({ level }) => level === "damaged")).toEqual([]);
    source.manners = {};
    const { manifest, rows } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect(rows).toBeLessThan(80);
    await tables.expectRows("fills", all.get("fills")!);
  });

  it("stays as it was where a window of it had been dropped", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(200), orders: [1] });
    const source = new ArraySource(run, new Map(all), { final: false });
    const early = all.get("fills")!.slice(0, 40).toSpliced(7, 1);
    source.tables.set("fills", early);
    await tables.archiveRun(source);
    source.tables = all;
    source.manners = { final: false, ...failsBehind(170) };
    const failed = await tables.archiveRun(source);
    expect(failed.manifest.tables.fills).toMatchObject({
      state: "INCOMPLETE",
      proven: { state: "OPEN", certificate: { rows: 39 } },
    });
    await tables.expectRows("fills", early);
    source.manners = { final: false };
    await tables.archiveRun(source);
    await tables.expectRows("fills", all.get("fills")!);
  });
});
