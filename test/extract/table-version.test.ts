// @module-tag slow
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { knownSource } from "../../src/archive/sources.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

describe("a finished run whose storage version changed", () => {
  it("is brought up to date in the tables that an archiving of some left out", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [1], orders: [1, 2] }));
    await tables.archiveRun(source);
    source.tables = world({ fills: [1], orders: [1, 2, 3] });
    source.storageVersion = "2";
    const some = await tables.archiveRun(source, { tables: ["fills"] });
    expect(some.manifest.tables).toMatchObject({
      fills: { proven: { storageVersion: "2" } },
      orders: { proven: { storageVersion: "1" } },
    });
    const { changed, manifest } = await tables.archiveRun(source);
    expect({ changed, state: manifest.state }).toEqual({ changed: true, state: "COMPLETE" });
    await tables.expectRows("orders", source.tables.get("orders")!);
    expect(await tables.archiveRun(source)).toMatchObject({ changed: false });
  });

  it("is asked again for a table that was ABSENT under the version before", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [1], orders: [] }));
    const facts = source.facts.bind(source);
    source.facts = async (ref, bounds) =>
      new Map([...(await facts(ref, bounds))!].filter(([name, { rows }]) => name === "fills" || rows > 0n));
    source.manners = {
      refuses: ({ table }) =>
        table === "orders" ? new RunvaultError("history_unavailable", "no orders here") : undefined,
    };
    expect((await tables.archiveRun(source)).manifest.tables.orders!.state).toBe("ABSENT");
    source.manners = {};
    source.tables = world({ fills: [1], orders: [4] });
    source.storageVersion = "2";
    await tables.archiveRun(source, { tables: ["fills"] });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
    await tables.expectRows("orders", source.tables.get("orders")!);
  });

  it("keeps its former version where fetching it again failed, and is fetched by the next job", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60), orders: [1] }));
    await tables.archiveRun(source);
    source.tables.set("fills", repriced(source.tables.get("fills")!));
    source.storageVersion = "2";
    source.manners = {
      refuses: ({ table }) =>
        table === "fills" ? new RunvaultError("server_error", "no luck today") : undefined,
    };
    const failed = await tables.archiveRun(source);
    expect(failed.manifest.tables).toMatchObject({
      fills: { state: "INCOMPLETE", proven: { storageVersion: "1", certificate: { rows: 60 } } },
      orders: { state: "COMPLETE", proven: { storageVersion: "2" } },
    });
    source.manners = {};
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("takes up nothing that an interrupted job fetched under another version", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(100) }));
    await tables.archiveUntil(source, "segment-journalled", 3);
    source.tables.set("fills", repriced(source.tables.get("fills")!));
    source.storageVersion = "2";
    const { manifest, resumedSegments } = await tables.archiveRun(source);
    expect({ state: manifest.state, resumedSegments }).toEqual({ state: "COMPLETE", resumedSegments: 0 });
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("takes up what an interrupted job fetched while it went on: counts tell what changed", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(100) }), { final: false });
    await tables.archiveUntil(source, "segment-journalled", 3);
    source.manners = {};
    source.storageVersion = "2";
    const { manifest, resumedSegments } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({ state: "COMPLETE", storageVersion: "2" });
    expect(resumedSegments).toBeGreaterThanOrEqual(3);
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("is fetched again in every table, whichever of them changed its count", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [1, 2], orders: [1] }));
    await tables.archiveRun(source);
    source.tables = world({ fills: [1, 2], orders: [1, 5] });
    source.tables.set("fills", repriced(source.tables.get("fills")!));
    source.storageVersion = "2";
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    for (const [name, rows] of source.tables) await tables.expectRows(name, rows);
  });

  it("is fetched again no further than an interrupted job of that version left it", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(100) }));
    const { rows: whole } = await tables.archiveRun(source);
    source.tables.set("fills", repriced(source.tables.get("fills")!));
    source.storageVersion = "2";
    await tables.archiveUntil(source, "segment-journalled", 20);
    const { rows, resumedSegments, manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect(resumedSegments).toBeGreaterThanOrEqual(20);
    expect(rows).toBeLessThan(whole / 2);
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("is compared once and not fetched where no row changed, though one comes in late meanwhile", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(100) }));
    const { rows: whole } = await tables.archiveRun(source);
    source.storageVersion = "2";
    let compared = 0;
    const { rows, manifest } = await tables.archiveRun(source, {
      step: (name) => {
        if (name === "window-compared" && ++compared === 10) source.tables = world({ fills: hours(101) });
      },
    });
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "COMPLETE",
      certificate: { rows: 101 },
    });
    expect(rows).toBeLessThan(whole / 2);
    await tables.expectRows("fills", source.tables.get("fills")!);
  });
});

describe("a finished run of a gateway without storage versions", () => {
  const unversioned = (list: Partial<Record<TableName, readonly number[]>>) => {
    const source = new ArraySource(run, world(list));
    source.storageVersion = undefined;
    return source;
  };

  it("is held against the facts, and is up to date where they agree", async () => {
    await using tables = await TableWorld.create();
    const source = unversioned({ fills: [1, 2], orders: [1] });
    await tables.archiveRun(source);
    expect(await tables.archiveRun(source)).toMatchObject({ changed: false });
    source.tables = world({ fills: [1, 2, 3], orders: [1] });
    const { manifest, changed } = await tables.archiveRun(source);
    expect({ state: manifest.state, changed }).toEqual({ state: "COMPLETE", changed: true });
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("stays as it was proven in a table of which the gateway keeps nothing any more, with a warning", async () => {
    await using tables = await TableWorld.create();
    const source = unversioned({ fills: [1, 2], orders: [1], factors: [] });
    const before = await tables.archiveRun(source);
    source.tables = world({ fills: [], orders: [1], factors: [] });
    const { changed, manifest, warnings } = await tables.archiveRun(source);
    expect({ changed, manifest }).toEqual({ changed: false, manifest: before.manifest });
    expect(warnings).toEqual(["the gateway no longer has the 2 rows of fills; what was proven stays"]);
  });

  it("is taken as it was archived where there are no facts either", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [1, 2] }), { literal: true });
    await tables.archiveRun(source);
    const asked = source.asked.length;
    expect(await tables.archiveRun(source)).toMatchObject({ changed: false });
    expect(source.asked).toHaveLength(asked);
  });
});

describe("a run that had ended, and that its source did not call final", () => {
  /** The same run, of one version all along: marked as final or not, in its list as in the facts. */
  const described = (source: ArraySource, final: boolean) => {
    const [runs, facts] = [ArraySource.prototype.runs.bind(source), ArraySource.prototype.facts.bind(source)];
    source.runs = async (...asked) => (await runs(...asked))!.map((entry) => ({ ...entry, final }));
    source.facts = async (...asked) => {
      const told = await facts(...asked);
      return told && new Map([...told].map(([name, own]) => [name, { ...own, final }]));
    };
    return source;
  };

  // caught by: a run that is never asked about again once it was COMPLETE, though only the mark ends it
  it.each([
    ["of a version", "1", false],
    ["without facts", undefined, true],
  ])("is compared once it does (%s)", async (_, storageVersion, hasNoFacts) => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(30), orders: [1] });
    const source = described(new ArraySource(run, new Map(rows), {}), false);
    source.storageVersion = storageVersion;
    if (hasNoFacts) source.facts = async () => null;
    const first = await tables.archiveRun(source);
    expect(first.manifest).toMatchObject({ state: "COMPLETE", run: { final: true, unmarked: true } });
    source.tables.set("fills", world({ fills: hours(31) }).get("fills")!);
    expect(await tables.archiveRun(source, { isManifestEnough: true })).toMatchObject({ changed: false });
    described(source, true);
    if (hasNoFacts) source.facts = async () => null;
    const { manifest } = await tables.archiveRun(source, { isManifestEnough: true });
    expect(manifest.state).toBe("COMPLETE");
    expect(manifest.run.unmarked).toBeUndefined();
    await tables.expectRows("fills", source.tables.get("fills")!);
    expect(await tables.archiveRun(source, { isManifestEnough: true })).toMatchObject({ changed: false });
  });

  // caught by: a mark that was seen, and is not remembered: named alone, a run of another instance would be COMPLETE
  it("is judged by marks that the archive remembers of its source", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(3) }));
    await tables.archiveRun(source);
    expect(await knownSource(tables.archive, source.label)).toMatchObject({ marksFinal: true });
  });
});
