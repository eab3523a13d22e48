import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";

const day = 86_400_000_000_000n;
const year2100 = 4_102_444_800_000_000_000n;
const times = { started: at(0), ended: at(200) };
const probesOf = (source: ArraySource) => source.asked.filter(({ limit }) => limit === 1);

/** Hides rows from those who do not ask within bounds that reach them from far away. */
class BlindSource extends ArraySource {
  hidden: (row: ArrayRow, request: RowRequest) => boolean = () => false;
  override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    const all = this.tables;
    this.tables = new Map(
      [...all].map(([name, rows]) => [name, rows.filter((row) => !this.hidden(row, request))]),
    );
    try {
      yield* super.rows(request);
    } finally {
      this.tables = all;
    }
  }
}

describe("the outer ends of a counted table", () => {
  const asks = (source: ArraySource) => source.asked.map(({ from, to, limit }) => [from, to, limit]);
  const small = (count: number) =>
    new ArraySource(run, world({ fills: hours(count) }), { times: { started: at(0), ended: at(count - 1) } });

  it("are shown by the answer that brought the rows, from 1970 to 2100, and by two probes where it is the largest so far", async () => {
    const seen = new SeenSource();
    const archived = async (source: ArraySource) => {
      await using tables = await TableWorld.create();
      expect((await tables.archiveRun(source, { seen })).manifest.state).toBe("COMPLETE");
      return asks(source);
    };
    const whole = [0n, year2100, undefined];
    expect(await archived(small(5))).toEqual([whole, [0n, at(0), 1], [at(4) + 1n, year2100, 1]]);
    expect(await archived(small(4))).toEqual([whole]);
    expect(await archived(small(5))).toEqual([whole]);
    expect(await archived(small(6))).toHaveLength(3);
  });

  it("are asked about in three runs with as many rows, where these do not reach the run's ends", async () => {
    const seen = new SeenSource();
    const times = { started: at(0), ended: at(40) };
    const asked: number[] = [];
    for (let nth = 0; nth < 5; nth++) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(5) }), { times });
      expect((await tables.archiveRun(source, { seen })).manifest.state).toBe("COMPLETE");
      asked.push(asks(source).length);
    }
    // two of them look for rows far from these
    expect(asked).toEqual([5, 5, 5, 3, 3]);
    await using tables = await TableWorld.create();
    const larger = new ArraySource(run, world({ fills: hours(6) }), { times });
    await tables.archiveRun(larger, { seen });
    expect(asks(larger)).toHaveLength(5);
  });

  it("are asked about where the answer has a round number of rows: a cap may end it, and the counts", async () => {
    const seen = new SeenSource();
    for (const count of [26, 25]) {
      await using tables = await TableWorld.create();
      const source = small(count);
      await tables.archiveRun(source, { seen, settings: { sliceRows: 1000 } });
      expect(asks(source)).toHaveLength(3);
    }
  });

  it.each(["the first", "the last"])(
    "are INCOMPLETE where a cap leaves %s rows, and counts what it leaves",
    async (end) => {
      const most = 13;
      const cut = <T>(rows: readonly T[]) => (end === "the first" ? rows.slice(0, most) : rows.slice(-most));
      const seen = new SeenSource();
      for (const [count, state] of [
        [12, "COMPLETE"],
        [15, "INCOMPLETE"],
        [16, "INCOMPLETE"],
      ] as const) {
        await using tables = await TableWorld.create();
        const source = small(count);
        const all = source.tables.get("fills")!;
        const counted = new ArraySource(run, new Map([["fills", cut(all)]]), { times });
        source.facts = (ref, bounds, ...more) => counted.facts(ref, bounds, ...more);
        const rows = source.rows.bind(source);
        source.rows = async function* (request) {
          const chunks: Uint8Array[] = [];
          for await (const chunk of rows(request)) chunks.push(chunk);
          const lines = Buffer.concat(chunks).toString().match(/.+\n/g) ?? [];
          yield Buffer.from(cut(lines).join(""));
        };
        const { manifest } = await tables.archiveRun(source, { seen, settings: { sliceRows: 1000 } });
        expect(latestView(manifest.tables.fills), `${count}`).toMatchObject({ state });
      }
    },
  );

  it("are asked about by probes where so wide bounds are refused, or answered with nothing", async () => {
    const isWide = ({ from, to, limit }: RowRequest) => limit === undefined && from === 0n && to === year2100;
    const refusing = small(5);
    const rows = refusing.rows.bind(refusing);
    refusing.rows = async function* (request) {
      if (isWide(request)) throw new RunvaultError("invalid_argument", "too wide");
      yield* rows(request);
    };
    const silent = small(5);
    const all = silent.rows.bind(silent);
    silent.rows = async function* (request) {
      if (!isWide(request)) yield* all(request);
    };
    for (const source of [refusing, silent]) {
      await using tables = await TableWorld.create();
      expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
      expect(probesOf(source).map(({ from, to }) => [from, to])).toEqual([
        [0n, at(0) + 1n],
        [at(4), year2100],
        [0n, at(0)],
        [at(4) + 1n, year2100],
      ]);
    }
  });

  it("are INCOMPLETE where a row lies ahead of the first that the facts know, and the rows stay", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(6) }), { times });
    const known = new ArraySource(run, new Map([["fills", source.tables.get("fills")!.slice(1)]]), { times });
    source.facts = (ref, bounds) => known.facts(ref, bounds);
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "incomplete", message: expect.stringContaining("[1970-01-01, 2100-01-01)") },
      certificate: { rows: 5, proof: "none" },
    });
  });

  it("are INCOMPLETE where a row lies behind the last", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(6) }), { times });
    const known = new ArraySource(run, new Map([["fills", source.tables.get("fills")!.slice(0, 5)]]), {
      times,
    });
    source.facts = (ref, bounds) => known.facts(ref, bounds);
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "incomplete" },
    });
  });

  it("are not shown by bounds that bring the first row and not the last, as where the end of a long window is kept", async () => {
    await using tables = await TableWorld.create();
    const manners = { times: { started: at(0), ended: at(6) } };
    const source = new ArraySource(run, world({ fills: hours(6) }), manners);
    const known = new ArraySource(run, world({ fills: hours(5) }), manners);
    source.facts = (ref, bounds) => known.facts(ref, bounds);
    const rows = source.rows.bind(source);
    source.rows = (request) => {
      const { from = 0n, to = year2100 } = request;
      return rows({ ...request, from: from > to - 3n * day ? from : to - 3n * day, to });
    };
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("INCOMPLETE");
  });

  it.each([
    ["refuses wide bounds", { longestNs: 31n * day, longer: "refused" }],
    ["cuts wide bounds down", { longestNs: 31n * day, longer: "cutDown" }],
  ] as const)("are shown on a day around the run by a gateway that %s", async (_, manners) => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(5), orders: hours(3) }), { times, ...manners });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect(probesOf(source).map(({ from }) => from)).toContain(at(0) - day);
    // the second table does not ask what was of no use to the first
    const wide = (request: RowRequest) => request.from === 0n || request.to === year2100;
    expect(
      new Set(
        probesOf(source)
          .filter(wide)
          .map(({ table }) => table),
      ).size,
    ).toBe(1);
  });

  it("are asked for by days where a gateway answers no more than the run is long", async () => {
    await using tables = await TableWorld.create();
    const manners: Manners = { times, longestNs: 3n * day, longer: "refused" };
    const source = new ArraySource(run, world({ fills: [190, 191] }), manners);
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    const hiding = new ArraySource(run, world({ fills: [3, 190, 191] }), manners);
    const known = new ArraySource(run, world({ fills: [190, 191] }), manners);
    hiding.facts = (ref, bounds) => known.facts(ref, bounds);
    await using others = await TableWorld.create();
    expect((await others.archiveRun(hiding)).manifest.tables.fills!.state).toBe("INCOMPLETE");
  });

  it("are asked for by a gateway's day at most, and not a nanosecond more", async () => {
    for (const longestNs of [day, day - 1n]) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(5) }), {
        times: { started: at(0), ended: at(5) },
        longestNs,
        longer: "refused",
      });
      const { state } = (await tables.archiveRun(source)).manifest.tables.fills!;
      expect([longestNs, state]).toEqual([longestNs, longestNs === day ? "COMPLETE" : "UNVERIFIED"]);
    }
  });

  it("are asked for up to the gateway's own time where it refuses bounds in the future", async () => {
    await using tables = await TableWorld.create();
    const now = at(6);
    const rows = world({ fills: hours(5), equity: hours(5), factors: [] });
    const source = new ArraySource(run, rows, {
      times: { started: at(0), ended: at(5) },
      refuses: ({ to }) =>
        to !== undefined && to > now ? new RunvaultError("invalid_argument", "not yet") : undefined,
    });
    Object.assign(source, { now: () => now });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    for (const name of ["fills", "factors"] as const) {
      const ground = expect.stringMatching(/ on \[2021-12-31, 2022-01-01T06:00/);
      expect(manifest.tables[name]!.proven!.certificate!.restsOn).toContainEqual(ground);
    }
  });

  it("are UNVERIFIED where no bounds bring the rows that are known, with the rows kept", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(5) }), {
      times,
      refuses: ({ limit }) => (limit === 1 ? new RunvaultError("invalid_argument", "no") : undefined),
    });
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      error: { code: "unverified", message: expect.stringContaining("bounds") },
      certificate: { rows: 5 },
    });
  });

  it.each([{}, { literal: true }])(
    "are asked for without a limit where one row is too low a limit: %o",
    async (manners) => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(5), factors: [] }), {
        times,
        ...manners,
        refuses: ({ limit }) => (limit === 1 ? new RunvaultError("limit_exceeded", "too little") : undefined),
      });
      const { manifest } = await tables.archiveRun(source, {
        seen: new SeenSource({ routes: ["factors"], empty: {} }),
      });
      expect(manifest.state).toBe("COMPLETE");
      await tables.expectRows("fills", source.tables.get("fills")!);
    },
  );

  it("go no further than the horizon of a run that goes on", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(6) }), { times, final: false });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("OPEN");
    for (const { to } of source.asked) expect(to! <= at(5) + 1n).toBe(true);
  });

  it("are found around times before 1970 and after 2100, too, and never asked for by the ends of int64", async () => {
    for (const first of [-5n * day, year2100 + day]) {
      await using tables = await TableWorld.create();
      const rows = rowsAt(run, "fills", [first, first + 1n]);
      const source = new ArraySource(run, new Map([["fills", rows]]), {
        times: { started: first, ended: first + 2n },
        int64IsNoTime: true,
      });
      expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    }
  });

  it("are an error where a probe brings another run's row", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(5) }), { times });
    const foreign = rowsAt({ ...run, runId: "other" }, "fills", [at(0)]);
    const rows = source.rows.bind(source);
    source.rows = async function* (request) {
      if (request.limit === 1) yield Buffer.from(`${foreign[0]!.line}\n`);
      else yield* rows(request);
    };
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.error).toMatchObject({ code: "history_identity_conflict" });
  });
});

describe("the outer ends where nothing counts rows", () => {
  it("bring in what a gateway leaves out that gives the last hours alone to who names no beginning", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(200), orders: [1, 2], events: [198, 199] }), {
      literal: true,
      times,
      defaultWindowNs: at(5) - at(0),
    });
    const seen = new SeenSource({ routes: ["orders"], empty: {} });
    const { manifest } = await tables.archiveRun(source, { seen });
    expect(manifest.state).toBe("COMPLETE");
    for (const [name, rows] of source.tables) await tables.expectRows(name, rows);
  });

  it("are asked for a second time behind the second pass: a row that turned up since is told", async () => {
    await using tables = await TableWorld.create();
    const source = new BlindSource(run, world({ fills: hours(30) }), { literal: true, times });
    let isThere = false;
    source.hidden = (row, { limit }) => row.ts === at(29) && !(isThere && limit === 1);
    const step = (name: string) => {
      if (name === "converted") isThere = true;
    };
    const { manifest } = await tables.archiveRun(source, { step });
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      certificate: { rows: 29 },
    });
  });

  it("take at most eight requests more than the two passes", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(30), equity: hours(30), metrics: [29] }), {
      literal: true,
      times: { started: at(0), ended: at(30) },
    });
    expect((await tables.archiveRun(source, { settings: { sliceRows: 500_000 } })).manifest.state).toBe(
      "COMPLETE",
    );
    for (const name of source.tables.keys()) {
      const asked = source.asked.filter(({ table }) => table === name);
      // of each of three streams: all of it, its last timestamp again, and whether there is more
      const passes = 9;
      expect(asked.length).toBeLessThanOrEqual(passes + 8);
      expect(probesOf(source).filter(({ table }) => table === name).length).toBeLessThanOrEqual(8 + 2);
    }
  });

  it("find what a cap leaves out that keeps the newest rows", async () => {
    for (const literal of [true, false]) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(200) }), {
        literal,
        times,
        cap: 40,
        capKeeps: "newest",
      });
      const { manifest } = await tables.archiveRun(source, { settings: { sliceRows: 1000 } });
      expect(manifest.tables.fills!.state).toBe("INCOMPLETE");
    }
  });

  it("find what is left out between a slice's beginning and its first row", async () => {
    await using tables = await TableWorld.create();
    const source = new BlindSource(run, world({ fills: hours(30).filter((n) => n !== 15) }), {
      literal: true,
      times,
    });
    const [row] = rowsAt(run, "fills", [at(15)]);
    const rows = source.rows.bind(source);
    // a row that only a narrow question brings
    source.rows = async function* (request) {
      const { from = 0n, to = 0n, limit } = request;
      const isNarrow = limit === 1 && from > 0n && from <= at(15) && to > at(15) && to - from < at(3) - at(0);
      if (isNarrow) yield Buffer.from(`${row!.line}\n`);
      else yield* rows(request);
    };
    const settings = { sliceRows: 1000 };
    const { manifest } = await tables.archiveRun(source, { settings });
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "incomplete" },
    });
  });
});
