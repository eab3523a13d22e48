import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

describe("rows that go at the gateway", () => {
  it("are noticed in a run that grew by more meanwhile, and let go only when told to", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 40)]]), { final: false });
    await tables.archiveRun(source);
    const left = all.filter((_, i) => i < 10 || i >= 20);
    source.tables.set("fills", left);
    const refused = await tables.archiveRun(source);
    expect(latestView(refused.manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      error: { code: "shrunk" },
    });
    await tables.expectRows("fills", all.slice(0, 40));
    const accepted = await tables.archiveRun(source, { settings: { acceptShrink: true } });
    expect(accepted.manifest.tables.fills!.state).toBe("OPEN");
    await tables.expectRows("fills", left);
  });

  it.each([
    ["counted, of another version", { version: "2", isGrowing: false, literal: false }],
    ["counted, while the run goes on", { version: undefined, isGrowing: true, literal: false }],
    ["uncounted", { version: "2", isGrowing: false, literal: true }],
  ])("are noticed where others came in their place: %s", async (_, { version, isGrowing, literal }) => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const before = all.filter((_, i) => i !== 12 && i !== 13);
    const source = new ArraySource(run, new Map([["fills", before]]), { final: !isGrowing, literal });
    source.storageVersion = version && "1";
    const first = await tables.archiveRun(source);
    expect(first.manifest.state).toBe(isGrowing ? "OPEN" : "COMPLETE");
    // one is gone, and two are new: no count shows it
    source.tables.set("fills", all.toSpliced(10, 1));
    source.storageVersion = version;
    const job = () => tables.archiveRun(source, { settings: { recheckBefore: at(2_000_000) } });
    for (const { manifest } of [await job(), await job()]) {
      expect(manifest.tables.fills!.attempt).toMatchObject({
        outcome: "UNVERIFIED",
        error: { code: "shrunk", message: expect.stringMatching(/^the gateway no longer has 1 proven row,/) },
      });
      await tables.expectRows("fills", before);
    }
    const accepted = await tables.archiveRun(source, { settings: { acceptShrink: true } });
    expect(accepted.manifest.state).toBe(isGrowing ? "OPEN" : "COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("are noticed in a finished run of which another version is fetched whole", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 40)]]));
    await tables.archiveRun(source);
    source.tables.set(
      "fills",
      all.filter((_, i) => i < 10 || i >= 20),
    );
    source.storageVersion = "2";
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      error: { code: "shrunk" },
    });
    await tables.expectRows("fills", all.slice(0, 40));
  });

  it("are noticed where as many came elsewhere, and all of the others changed in place", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: [...hours(60), 50] }).get("fills")!;
    const before = all.toSpliced(51, 1);
    const source = new ArraySource(run, new Map([["fills", before]]), { final: false });
    await tables.archiveRun(source);
    source.tables.set("fills", repriced(all.toSpliced(40, 1)));
    source.manners = {};
    // more windows in a row than are asked for one by one
    const { manifest } = await tables.archiveRun(source, { settings: { sliceRows: 1000 } });
    expect(manifest.tables.fills).toMatchObject({
      state: "UNVERIFIED",
      attempt: { error: { code: "shrunk" } },
    });
    await tables.expectRows("fills", before);
  });

  it("are noticed behind a job that kept its progress without a proof", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60), orders: [1] });
    const source = new ArraySource(run, new Map(all), { final: false });
    source.tables.set("fills", all.get("fills")!.slice(0, 40));
    await tables.archiveRun(source);
    source.tables = new Map(all);
    source.manners = {
      final: false,
      refuses: ({ table }, answer) =>
        table === "fills" && answer > 20 ? new RunvaultError("server_error", "no luck today") : undefined,
    };
    await tables.archiveRun(source);
    source.manners = { final: false };
    source.tables.set("fills", all.get("fills")!.slice(0, 30));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.error).toMatchObject({ code: "shrunk" });
  });
});

describe("a table with more rows than the facts count", () => {
  const ghostly = () => {
    const source = new ArraySource(run, world({ fills: hours(5) }));
    const counted = new ArraySource(run, new Map([["fills", source.tables.get("fills")!.toSpliced(2, 1)]]));
    source.facts = (ref, bounds) => counted.facts(ref, bounds);
    return { source, counted };
  };

  it("is UNVERIFIED, and COMPLETE with fewer rows once the gateway gives no more than it counts", async () => {
    await using tables = await TableWorld.create();
    const { source, counted } = ghostly();
    const first = await tables.archiveRun(source);
    expect(latestView(first.manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      certificate: { rows: 5 },
    });
    const second = await tables.archiveRun(source);
    expect(latestView(second.manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      certificate: { rows: 5 },
    });
    source.tables = counted.tables;
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.state).toBe("COMPLETE");
    await tables.expectRows("fills", counted.tables.get("fills")!);
  });

  it("blocks no later job by one that failed in between", async () => {
    await using tables = await TableWorld.create();
    const { source, counted } = ghostly();
    await tables.archiveRun(source);
    source.manners = { refuses: () => new RunvaultError("server_error", "no luck today") };
    const failed = await tables.archiveRun(source);
    expect(latestView(failed.manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "server_error" },
    });
    source.manners = {};
    source.tables = counted.tables;
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
  });
});

describe("rows that are looked for among those that were proven", () => {
  it("are not missed where one was corrected to another time: it keeps its seq", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all]]));
    await tables.archiveRun(source);
    const ts = at(12) + 7n;
    const line = all[12]!.line.replace(`"ts_event":"${at(12)}"`, `"ts_event":"${ts}"`);
    source.tables.set("fills", all.with(12, { ...all[12]!, ts, line }));
    source.storageVersion = "2";
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  const lose = async (tables: TableWorld, files: readonly string[]) => {
    for (const file of files) await rm(join(tables.archive.layout.dataDir(run), file));
  };

  it("are not missed where the files of before are lost, final or not", async () => {
    const all = world({ fills: hours(60) }).get("fills")!;
    for (const final of [true, false]) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, new Map([["fills", all.toSpliced(5, 1)]]), { final });
      const { segments, parquet } = (await tables.archiveRun(source)).manifest.tables.fills!.proven!;
      await lose(tables, [segments[1]!.file, parquet[0]!.file]);
      source.tables.set("fills", all);
      source.storageVersion = "2";
      expect((await tables.archiveRun(source)).manifest.state).toBe(final ? "COMPLETE" : "OPEN");
      await tables.expectRows("fills", all);
    }
  });

  it("are not made up for by rows that were set aside before", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const odd = { ...all[50]!, line: all[50]!.line.replace(/"price":"[^"]*"/, '"price":5') };
    const bent = all.with(50, odd);
    const source = new ArraySource(run, new Map([["fills", bent.filter((_, i) => i !== 12 && i !== 13)]]));
    const first = await tables.archiveRun(source, { settings: { acceptQuarantine: true } });
    expect(first.manifest.state).toBe("COMPLETE");
    source.tables.set("fills", bent.toSpliced(10, 1));
    source.storageVersion = "2";
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.error).toMatchObject({ code: "shrunk" });
  });
});
