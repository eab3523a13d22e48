import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/table-view.ts";
import { RunvaultError } from "../../src/model/error.ts";
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

  it("is asked about again once a job where neither facts nor versions tell, and fetched where it comes", async () => {
    await using tables = await TableWorld.create();
    const refuses = ({ table }: { table: string }) => (table === "fills" ? unavailable() : undefined);
    const source = new ArraySource(run, world({ fills: hours(9), orders: hours(20) }), {
      literal: true,
      refuses,
    });
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("ABSENT");
    source.asked.length = 0;
    expect((await tables.archiveRun(source)).changed).toBe(false);
    expect(source.asked).toMatchObject([{ table: "fills", limit: 1 }]);
    source.manners = { literal: true };
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("COMPLETE");
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
});
