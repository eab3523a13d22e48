// @module-tag slow
import { describe, expect, it } from "vitest";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

/** A source that is changed once its rows were asked for so many times. */
function changing(source: ArraySource, after: number, change: () => void) {
  const rows = source.rows.bind(source);
  let asked = 0;
  source.rows = (request) => {
    if (++asked === after) change();
    return rows(request);
  };
  return source;
}

describe("a finished run whose version moves while it is fetched", () => {
  it("has the rows of the version that stood at the end, those that changed in place, too", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60) }));
    changing(source, 3, () => {
      source.tables.set("fills", repriced(source.tables.get("fills")!));
      source.storageVersion = "2";
    });
    const { manifest, warnings } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE", proven: { storageVersion: "2" } });
    expect(warnings).toEqual([]);
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("is COMPLETE under the last version where its rows stayed the same", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60) }));
    changing(source, 3, () => {
      source.storageVersion = "2";
    });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE", proven: { storageVersion: "2" } });
    expect((await tables.archiveRun(source)).changed).toBe(false);
  });

  it("counts as none where it is another each time it is asked for, and counts then say what is up to date", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60) }));
    const runs = source.runs.bind(source);
    let version = 0;
    source.runs = async (instanceId) => {
      source.storageVersion = `${++version}`;
      return await runs(instanceId);
    };
    const first = await tables.archiveRun(source);
    expect(first.manifest.tables.fills).toMatchObject({
      state: "COMPLETE",
      proven: { storageVersion: null },
    });
    expect(first.warnings).toEqual([expect.stringContaining("it is ignored")]);
    expect((await tables.archiveRun(source)).changed).toBe(false);
  });

  it("is UNVERIFIED where its rows are others each time", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(9) }));
    let asked = 0;
    const rows = source.rows.bind(source);
    source.rows = (request) => {
      source.storageVersion = `v${++asked}`;
      source.tables.set(
        "fills",
        source.tables
          .get("fills")!
          .map((row) => ({ ...row, line: row.line.replace(/"price":"[^"]*"/, `"price":"${asked}"`) })),
      );
      return rows(request);
    };
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ state: "UNVERIFIED", proven: null });
  });

  it("has rows that came into no window that is held, by counts of after the move", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: [...hours(6), 1500, 3000, 3001, 3002] }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", rows.filter(({ ts }) => ts !== at(1500))]]));
    const runs = source.runs.bind(source);
    let asked = 0;
    source.runs = async (instanceId) => {
      if (++asked === 2) {
        source.storageVersion = "2";
        source.tables.set("fills", rows);
      }
      return await runs(instanceId);
    };
    const { manifest } = await tables.archiveRun(source, { settings: { sliceRows: 2 } });
    expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE", proven: { storageVersion: "2" } });
    await tables.expectRows("fills", rows);
  });
});

describe("a finished run that has more rows than when it was archived, of which facts count some yet", () => {
  it.each([
    ["behind the last, of another version", 9, { version: "2", before: hours(9) }],
    ["ahead of the first, of another version", 0, { version: "2", before: hours(9, 1) }],
    ["behind the last, of no version", 9, { version: undefined, before: hours(8) }],
    ["ahead of the first, of no version", 0, { version: undefined, before: hours(8, 1) }],
  ])("has all of them: %s", async (_, hour, { version, before }) => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(10) }).get("fills")!;
    const some = (wanted: readonly number[]) =>
      all.filter(({ ts }) => wanted.some((hour) => ts === at(hour)));
    const source = new ArraySource(run, new Map([["fills", some(before)]]));
    source.storageVersion = version && "1";
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    const lagging = new ArraySource(run, new Map([["fills", all.filter(({ ts }) => ts !== at(hour))]]));
    const facts = source.facts.bind(source);
    let isLate = true;
    source.facts = (...asked) => (isLate ? lagging.facts(...asked) : facts(...asked));
    source.tables = new Map([["fills", all]]);
    source.storageVersion = version;
    const wait = async () => {
      isLate = false;
    };
    const settings = { factsPauseNs: 1n };
    expect((await tables.archiveRun(source, { wait, settings })).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", all);
  });
});

describe("a finished run that nothing counts, whose version moves while it is fetched", () => {
  const all = world({ fills: hours(60) }).get("fills")!;
  const uncounted = (rows: typeof all) => {
    const source = new ArraySource(run, new Map([["fills", rows]]));
    source.facts = async () => null;
    return source;
  };

  it.each([
    ["in the middle", all.toSpliced(30, 1)],
    ["behind the last", all.slice(0, 55)],
    ["ahead of the first", all.slice(3)],
  ])("has the rows that came meanwhile, %s", async (_, before) => {
    await using tables = await TableWorld.create();
    const source = uncounted(before);
    const runs = source.runs.bind(source);
    let looks = 0;
    source.runs = async (...asked) => {
      if (++looks === 2) {
        source.storageVersion = "2";
        source.tables.set("fills", all);
      }
      return await runs(...asked);
    };
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE", proven: { storageVersion: "2" } });
    await tables.expectRows("fills", all);
  });

  it("has one that counts as none where its rows stay the same", async () => {
    await using tables = await TableWorld.create();
    const source = uncounted(all);
    const runs = source.runs.bind(source);
    let looks = 0;
    source.runs = async (...asked) => {
      source.storageVersion = `${++looks}`;
      return await runs(...asked);
    };
    const { manifest, warnings } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE", proven: { storageVersion: null } });
    expect(warnings).toEqual([expect.stringContaining("it is ignored")]);
  });
});

describe("a finished run that nothing counts or marks", () => {
  const literal = { literal: true } as const;
  const settings = { settleNs: 60_000_000_000n };

  it("is settled first: from its end, by the gateway's own clock", async () => {
    await using tables = await TableWorld.create();
    const ended = 5_000_000_000_000n;
    const times = { started: 1n, ended };
    const source = Object.assign(new ArraySource(run, world({ fills: hours(9) }), { ...literal, times }), {
      now: () => ended + 20_000_000_000n,
    });
    const waits: bigint[] = [];
    const wait = async (ns: bigint) => {
      waits.push(ns);
    };
    await tables.archiveRun(source, { settings, wait });
    expect(waits).toEqual([40_000_000_000n]);
    await tables.archiveRun(source, { settings, wait });
    expect(waits).toHaveLength(1);
  });

  it("is waited for no longer than that, though the gateway's clock is behind or the end still to come", async () => {
    await using tables = await TableWorld.create();
    const times = { started: 1n, ended: 5_000_000_000_000n };
    const rows = new ArraySource(run, world({ fills: hours(9) }), { ...literal, times });
    const source = Object.assign(rows, { now: () => times.ended - 600_000_000_000n });
    const waits: bigint[] = [];
    const wait = async (ns: bigint) => {
      waits.push(ns);
    };
    await tables.archiveRun(source, { settings, wait });
    expect(waits).toEqual([settings.settleNs]);
  });

  it("has its two passes that far apart where nobody says when it ended", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    const source = new ArraySource(run, world({ fills: hours(8) }), literal);
    const document = source.document.bind(source);
    source.document = async (ref, kind) =>
      kind === "summary" ? Buffer.from(JSON.stringify({ status: "FINISHED" })) : await document(ref, kind);
    let waited = 0n;
    const wait = async (ns: bigint) => {
      waited += ns;
      source.tables = rows;
    };
    // a row that came in between the two passes is noticed
    const { manifest } = await tables.archiveRun(source, { settings, wait });
    expect(waited).toBe(60_000_000_000n);
    expect(manifest.tables.fills!.attempt.outcome).not.toBe("ok");
    source.tables = rows;
    expect((await tables.archiveRun(source, { settings, wait })).manifest.state).toBe("COMPLETE");
  });

  it("takes up nothing that an interrupted job fetched longer ago than that", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60) }), literal);
    await tables.archiveUntil(source, "segment-journalled", 5);
    source.tables.set("fills", repriced(source.tables.get("fills")!));
    const { manifest } = await tables.archiveRun(source, { settings: { settleNs: 0n } });
    expect(manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });
});
