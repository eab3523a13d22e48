import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

describe("facts that move while a job goes on", () => {
  it("leave a table UNVERIFIED for a night where rows went away, and a bucket with the Parquet of what is there", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(40) }));
    const left = source.tables.get("fills")!.slice(0, 20);
    const step = (name: string) => {
      if (name === "converted") source.tables = new Map([["fills", left]]);
    };
    const { manifest } = await tables.archiveRun(source, { step });
    expect(manifest.state).toBe("UNVERIFIED");
    const { attempt } = (await tables.archiveRun(source)).manifest.tables.fills!;
    expect(attempt.outcome).toBe("ok");
    expect(attempt.notes.join()).toMatch(/^an earlier attempt saw 40 rows in .*; 8 looks since agree on 20$/);
    await tables.expectRows("fills", left);
  });

  it("prove nothing of a window that was dropped and not asked for again", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(40) }));
    const facts = source.facts.bind(source);
    let isConverted = false;
    // then all of the run is said to hold what its second window does, and its first window one row more than came
    source.facts = async (ref, bounds) => {
      const answer = new Map(await facts(ref, bounds));
      const own = answer.get("fills")!;
      const isAll = bounds.from === undefined && bounds.to === undefined;
      const rows = isAll ? 20n : own.first === at(0) ? own.rows + 1n : own.rows;
      if (isConverted) answer.set("fills", { ...own, rows });
      return answer;
    };
    const step = (name: string) => {
      if (name === "converted") isConverted = true;
    };
    const settings = { segmentBytes: 100_000 };
    const { manifest } = await tables.archiveRun(source, { step, settings });
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { message: expect.stringMatching(/^1 row missing in \[.*: got 20 of 21$/) },
      certificate: { rows: 40 },
    });
  });

  it("are not believed that there is no row, where they name the times of some", async () => {
    await using tables = await TableWorld.create();
    const times = { started: at(0), ended: at(10) };
    const source = new ArraySource(run, world({ fills: hours(10) }), { times });
    const facts = source.facts.bind(source);
    source.facts = async (ref, bounds) => {
      const answer = new Map(await facts(ref, bounds));
      answer.set("fills", { ...answer.get("fills")!, rows: 0n });
      return answer;
    };
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      certificate: { rows: 10, gatewayRows: "0" },
    });
  });

  it("do not leave a table ABSENT of which they count rows in the end", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(10), orders: [1] }));
    const facts = source.facts.bind(source);
    let isForgotten = true;
    source.facts = async (ref, bounds) => {
      const answer = new Map(await facts(ref, bounds));
      if (isForgotten) answer.delete("fills");
      return answer;
    };
    const step = (name: string) => {
      if (name === "converted") isForgotten = false;
    };
    // the route gives rows, so the facts are asked again after a pause
    const { manifest } = await tables.archiveRun(source, { step });
    expect(manifest.tables.fills!.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });
});
