import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import type { StorageFacts } from "../../src/model/source.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const unavailable = () => new RunvaultError("history_unavailable", "this run has no such table");

describe("a table that the gateway says it does not keep", () => {
  it("is ABSENT where there are no facts and no row of it ever came", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [], orders: [1, 2] }), {
      literal: true,
      refuses: ({ table }) => (table === "fills" ? unavailable() : undefined),
    });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "ABSENT",
      certificate: null,
      segments: [],
    });
  });

  // alone finds: a refusal that passes makes a table of a finished run ABSENT for good
  it("is not ABSENT where its route refuses once, and is whole the night after", async () => {
    await using tables = await TableWorld.create();
    let refused = 0;
    const source = new ArraySource(run, world({ fills: hours(3), orders: [1, 2] }), {
      literal: true,
      refuses: ({ table }) => (table === "fills" && refused++ === 0 ? unavailable() : undefined),
    });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ proven: null, attempt: { outcome: "INCOMPLETE" } });
    const again = await tables.archiveRun(source);
    expect(again.manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("is INCOMPLETE where the facts count rows of it, and made good once the gateway gives them", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [1, 2], orders: [1, 2] }), {
      refuses: ({ table }) => (table === "fills" ? unavailable() : undefined),
    });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("INCOMPLETE");
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "history_unavailable" },
    });
    source.manners = {};
    const again = await tables.archiveRun(source);
    expect(again.manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it.each([false, true])(
    "is INCOMPLETE where it said so after rows had come (literal: %s)",
    async (literal) => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(100) }), {
        literal,
        cap: 30,
        refuses: (_, answer) => (answer >= 3 ? unavailable() : undefined),
      });
      const { manifest } = await tables.archiveRun(source);
      expect(latestView(manifest.tables.fills)).toMatchObject({
        state: "INCOMPLETE",
        error: { code: "history_unavailable" },
      });
      expect((await reportOf(tables.archive, run)).checks.filter(({ level }) => level === "damaged")).toEqual(
        [],
      );
      source.manners = { literal };
      expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
      await tables.expectRows("fills", source.tables.get("fills")!);
    },
  );

  it("is not ABSENT while an interrupted job holds rows of it, unless that is accepted", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60), orders: [1] }));
    await tables.archiveUntil(source, "segment-journalled", 3);
    const facts = source.facts.bind(source);
    source.facts = async (ref, bounds): Promise<StorageFacts> =>
      new Map([...(await facts(ref, bounds))!].filter(([name]) => name !== "fills"));
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "history_unavailable" },
    });
    expect(latestView(manifest.tables.fills!).segments.length).toBeGreaterThan(0);
    source.manners = {
      refuses: ({ table }) =>
        table === "fills" ? new RunvaultError("history_unavailable", "no fills here") : undefined,
    };
    const accepted = await tables.archiveRun(source, { settings: { acceptShrink: true } });
    expect(latestView(accepted.manifest.tables.fills)).toMatchObject({
      state: "ABSENT",
      segments: [],
      parquet: [],
      quarantine: [],
    });
  });

  it("is UNVERIFIED where the facts leave it out, and its route answers without a row", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [], orders: [1, 2] }));
    const facts = source.facts.bind(source);
    source.facts = async (...asked): Promise<StorageFacts> =>
      new Map([...(await facts(...asked))!].filter(([name]) => name !== "fills"));
    expect((await tables.archiveRun(source)).manifest.tables.fills).toMatchObject({
      state: "UNVERIFIED",
      proven: null,
      attempt: { error: { message: expect.stringContaining("its own route does not say") } },
    });
  });

  it.each([
    ["without rows", [], false],
    ["with rows, though losing them is accepted", hours(30), true],
  ] as const)("is UNVERIFIED while the run goes on and was proven %s", async (_, proven, acceptShrink) => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: proven, orders: hours(60) });
    const source = new ArraySource(run, rows, { final: false });
    const { manifest: before } = await tables.archiveRun(source);
    const facts = source.facts.bind(source);
    source.facts = async (...asked): Promise<StorageFacts> =>
      new Map([...(await facts(...asked))!].filter(([name]) => name !== "fills"));
    source.manners = {
      final: false,
      refuses: ({ table }) => (table === "fills" ? unavailable() : undefined),
    };
    const { manifest } = await tables.archiveRun(source, { settings: { acceptShrink } });
    expect(manifest.tables.fills).toMatchObject({
      state: "UNVERIFIED",
      proven: before.tables.fills!.proven,
      attempt: { outcome: "UNVERIFIED", error: { message: expect.stringContaining("has no such table") } },
    });
    expect((await reportOf(tables.archive, run)).checks.filter(({ level }) => level === "damaged")).toEqual(
      [],
    );
    await tables.expectRows("fills", rows.get("fills")!);
  });

  describe.each([
    ["counts, but no version", {}, undefined],
    ["neither counts nor versions", { literal: true }, undefined],
    ["counts and a version", {}, "1"],
  ] as const)("of a finished run, by a gateway with %s", (_, manners, version) => {
    const refuses = ({ table }: { table: TableName }) => (table === "fills" ? unavailable() : undefined);

    it("is asked for again by each job, unless the version vouches for it, and fetched once it is there", async () => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: [], orders: [1, 2] }), { ...manners, refuses });
      source.storageVersion = version;
      const facts = source.facts.bind(source);
      const left = async (...asked: Parameters<typeof facts>): Promise<StorageFacts | null> => {
        const all = await facts(...asked);
        return all === null ? null : new Map([...all].filter(([name]) => name !== "fills"));
      };
      source.facts = left;
      await tables.archiveRun(source);
      const before = source.asked.length;
      const again = await tables.archiveRun(source);
      expect([again.changed, again.manifest.tables.fills!.state]).toEqual([false, "ABSENT"]);
      expect(source.asked.slice(before).map(({ table }) => table)).toEqual(
        version === undefined ? ["fills"] : [],
      );
      // the route answers now, and facts say so a night later
      source.manners = manners;
      source.tables = world({ fills: [1, 2], orders: [1, 2] });
      if (version === undefined && !("literal" in manners)) {
        const { manifest } = await tables.archiveRun(source);
        expect(manifest.tables.fills).toMatchObject({ state: "INCOMPLETE", proven: { state: "ABSENT" } });
      }
      source.facts = facts;
      if (version !== undefined) source.storageVersion = "2";
      const { manifest } = await tables.archiveRun(source);
      expect(manifest.tables.fills!.state).toBe("COMPLETE");
      await tables.expectRows("fills", source.tables.get("fills")!);
    });
  });
});
