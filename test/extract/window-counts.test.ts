// @module-tag slow
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { StorageFacts } from "../../src/model/source.ts";
import type { TimeBounds } from "../../src/model/time.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource } from "../fixtures/source/array-source.ts";

/** Counts rows of `counted`, and gives those of `source`. */
function countingOthers(source: ArraySource, counted: readonly ArrayRow[]): ArraySource {
  const other = new ArraySource(run, new Map([["fills", [...counted]]]), source.manners);
  source.facts = (...asked) => other.facts(...asked);
  return source;
}

const all = world({ fills: hours(60) }).get("fills")!;
/** One row of the first slice is lost, and one of the third is there twice as often as it is counted. */
const moved = () => {
  const extra = { ...world({ fills: [50] }).get("fills")![0]!, ts: at(50) + 1n, seq: 1000n };
  const line = extra.line
    .replace(`"ts_event":"${at(50)}"`, `"ts_event":"${at(50) + 1n}"`)
    .replace(/"seq":"\d+"/, '"seq":"1000"');
  return [...all.slice(0, 5), ...all.slice(6, 51), { ...extra, line }, ...all.slice(51)];
};

describe("a window that brings another number of rows than the gateway counts in it", () => {
  it("leaves the table INCOMPLETE, by name, though another window makes up for it in the total", async () => {
    await using tables = await TableWorld.create();
    const source = countingOthers(new ArraySource(run, new Map([["fills", moved()]])), all);
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      certificate: { proof: "none", rows: 60, gatewayRows: "60" },
      error: {
        code: "incomplete",
        message: expect.stringMatching(/^\d+ rows? missing in \[2022-01-01.*: got \d+ of \d+$/),
      },
    });
    // nor does the next job take them for whole
    source.asked.length = 0;
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("INCOMPLETE");
    source.tables.set("fills", all);
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", all);
  });

  it("is not taken for whole by a job that goes on after a kill", async () => {
    await using tables = await TableWorld.create();
    const source = countingOthers(new ArraySource(run, new Map([["fills", moved()]])), all);
    await tables.archiveUntil(source, "certified", 1);
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("INCOMPLETE");
    source.tables.set("fills", all);
    await tables.archiveRun(source);
    await tables.expectRows("fills", all);
  });

  it("is not kept by a job that fails in another window", async () => {
    await using tables = await TableWorld.create();
    const source = countingOthers(new ArraySource(run, new Map([["fills", moved()]])), all);
    source.manners = {
      refuses: ({ from }) =>
        from !== undefined && from >= at(20) && from < at(40)
          ? new RunvaultError("server_error", "no luck today")
          : undefined,
    };
    expect((await tables.archiveRun(source)).manifest.tables.fills!.attempt.error?.code).toBe("server_error");
    source.manners = {};
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("INCOMPLETE");
  });

  it("is UNVERIFIED where more rows came than are counted", async () => {
    await using tables = await TableWorld.create();
    const source = countingOthers(new ArraySource(run, new Map([["fills", all]])), all.toSpliced(30, 1));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt).toMatchObject({
      outcome: "UNVERIFIED",
      error: {
        message: expect.stringMatching(/^1 more row than the gateway counts in \[.*: got 20 instead of 19$/),
      },
    });
  });

  it.each([true, false])(
    "is not taken for whole once a row makes up for the one too many, final %s",
    async (final) => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, new Map([["fills", all.toSpliced(31, 1)]]), { final });
      countingOthers(source, all.toSpliced(30, 2));
      const { outcome } = (await tables.archiveRun(source)).manifest.tables.fills!.attempt;
      // of a run that goes on, counts may lag once
      expect(outcome).toBe(final ? "UNVERIFIED" : "ok");
      source.tables.set("fills", all);
      countingOthers(source, all.toSpliced(30, 1));
      expect((await tables.archiveRun(source)).manifest.tables.fills!.attempt.outcome).toBe("UNVERIFIED");
      countingOthers(source, all);
      expect((await tables.archiveRun(source)).manifest.state).toBe(final ? "COMPLETE" : "OPEN");
      await tables.expectRows("fills", all);
    },
  );

  it("is not taken for whole once another row is lost, so that the counts are those of its rows", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, new Map([["fills", all.toSpliced(31, 1)]]));
    countingOthers(source, all);
    expect((await tables.archiveRun(source)).manifest.tables.fills!.attempt.outcome).toBe("INCOMPLETE");
    source.tables.set("fills", all.toSpliced(30, 1));
    countingOthers(source, all.toSpliced(30, 1));
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", all.toSpliced(30, 1));
  });

  it("brought rows: the gateway may not say afterwards that there never were any", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 10)]]));
    countingOthers(source, all.slice(1, 10));
    await tables.archiveRun(source);
    source.tables.set("fills", []);
    countingOthers(source, []);
    expect((await tables.archiveRun(source)).manifest.tables.fills!.attempt).toMatchObject({
      outcome: "UNVERIFIED",
      error: { message: expect.stringContaining("sent rows of it before") },
    });
  });

  it("is fetched again, and what is counted is proven on another night: more rows came of it at first", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, new Map([["fills", moved()]]));
    countingOthers(source, all);
    const onNote = () => source.tables.set("fills", all);
    const { attempt } = (await tables.archiveRun(source, { onNote })).manifest.tables.fills!;
    expect(attempt.error?.message).toMatch(/^the gateway sent \d+ rows in \[.* command, but \d+ are here$/);
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", all);
  });

  it("is counted again before anything is fetched again: rows may come in meanwhile", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, new Map([["fills", all.toSpliced(30, 1)]]));
    const rows = source.rows.bind(source);
    source.rows = (request) => {
      source.tables.set("fills", all);
      return rows(request);
    };
    const notes: string[] = [];
    const { manifest } = await tables.archiveRun(source, { onNote: (text) => notes.push(text) });
    expect(manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", all);
    expect(notes).toEqual([]);
  });
});

describe("where all counts agree", () => {
  it("each slice is counted once, and nothing is asked for besides", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, new Map([["fills", all]]));
    const bounds: TimeBounds[] = [];
    const facts = source.facts.bind(source);
    source.facts = async (ref, asked, ...rest): Promise<StorageFacts | null> => {
      bounds.push(asked);
      return await facts(ref, asked, ...rest);
    };
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    const windows = bounds.filter(({ from }) => from !== undefined);
    // two that show whether facts keep to bounds, and one a slice
    const slices = source.asked.filter(({ limit }) => limit === undefined);
    expect(windows).toHaveLength(2 + slices.length);
    // before and after, and five times more before rows are proven
    expect(bounds.length - windows.length).toBe(2 + 5);
  });
});
