import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const day = 86_400_000_000_000n;
/** A week, with rows in its first day and in its last hours. */
const times = { started: at(0), ended: at(168) };
const withGap = [...hours(20), ...hours(10, 157)];
const probesOf = (source: ArraySource) =>
  source.asked.filter(({ table, limit }) => table === "fills" && limit === 1);

const max = (a: bigint, b: bigint) => (a > b ? a : b);
const min = (a: bigint, b: bigint) => (a < b ? a : b);

/** Ways to move bounds without a word, three days apart at most. */
const moved = {
  "three days ahead of the end": ({ from, to = times.ended }: RowRequest) => ({
    from: max(from ?? 0n, to - 3n * day),
    to,
  }),
  "three days behind the beginning, which is the run's at the earliest": ({ from, to }: RowRequest) => {
    const begin = max(from ?? 0n, times.started);
    return { from: begin, to: min(to ?? begin + 3n * day, begin + 3n * day) };
  },
};

describe("rows far from those of the same table", () => {
  it.each(Object.entries(moved))("are found where a gateway answers no more than %s", async (_, move) => {
    for (const literal of [true, false]) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: withGap }), { literal, times });
      const rows = source.rows.bind(source);
      source.rows = (request) => rows({ ...request, ...move(request) });
      const facts = source.facts.bind(source);
      // a gateway that counts what its routes give
      source.facts = (ref, bounds, ...more) => facts(ref, move(bounds as RowRequest), ...more);
      const { manifest } = await tables.archiveRun(source);
      expect(latestView(manifest.tables.fills)).toMatchObject({
        state: "INCOMPLETE",
        error: { code: "incomplete" },
      });
    }
  });

  it("are asked for by days, and not at all where an answer had rows as far apart, or the run is as short", async () => {
    const proven = async (rows: ReturnType<typeof world>, ended: bigint) => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, rows, { times: { started: at(0), ended } });
      const settings = { sliceRows: 1000 };
      expect((await tables.archiveRun(source, { settings })).manifest.state).toBe("COMPLETE");
      return probesOf(source).length;
    };
    const alone = world({ fills: hours(5) });
    expect(await proven(alone, at(28))).toBe(2);
    expect(await proven(alone, at(168))).toBe(2 + 7);
    expect(await proven(world({ fills: hours(5), orders: hours(169) }), at(168))).toBe(2);
  });

  it("are not said to be none where they lie too far off, or may not be asked for by days", async () => {
    const refuses = ({ from, to, limit }: RowRequest) =>
      limit === 1 && from !== undefined && from > at(4) && to !== undefined && to <= at(168)
        ? new RunvaultError("invalid_argument", "no")
        : undefined;
    for (const [manners, bounds] of [
      [{ times: { started: 1n, ended: at(5) } }, "[2021-12-31, 2100-01-01)"],
      [{ times, refuses }, "[1970-01-01, 2022-01-02T04:00:00.000000000Z)"],
    ] as const) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(5) }), manners);
      const { fills } = (await tables.archiveRun(source)).manifest.tables;
      expect(fills!.proven?.certificate?.restsOn).toEqual([`outer ends empty on ${bounds}`]);
    }
  });
});

/** A run of a day, whose rows begin two hours after it and end two hours before. */
const short = { started: at(0), ended: at(23) };
const lastHours = at(5) - at(0);

/** Ways to hide rows of that run from bounds around it, and not from those within. */
const hiding: Record<string, (ts: bigint, request: RowRequest) => boolean> = {
  "takes 1970 for no beginning, and gives the last hours then": (ts, { from = 0n }) =>
    from === 0n && ts < short.ended - lastHours,
  "hides the first rows in windows of more than a day": (ts, { from = 0n, to }) =>
    (to === undefined || to - from > day) && ts < at(4),
  "hides the latest rows where the end lies in the future": (ts, { to }) =>
    (to === undefined || to > at(30)) && ts >= at(19),
};

describe("rows within the run's own times, where nothing counts them", () => {
  class Hiding extends ArraySource {
    isHidden: (ts: bigint, request: RowRequest) => boolean = () => false;
    override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
      const visible = [...this.tables].map(
        ([name, rows]) => [name, rows.filter(({ ts }) => !this.isHidden(ts, request))] as const,
      );
      const others = new ArraySource(run, new Map(visible), this.manners);
      this.asked.push(request);
      yield* others.rows(request);
    }
  }

  // each was COMPLETE, short of the rows, for only bounds far around the run were asked with
  it.each(Object.entries(hiding))("are missed of a gateway that %s", async (_, isHidden) => {
    await using tables = await TableWorld.create();
    const source = new Hiding(run, world({ fills: hours(20, 2) }), { literal: true, times: short });
    source.isHidden = isHidden;
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "incomplete" },
    });
  });

  // a table of which wide bounds hide all rows was proven to have none
  it("are fetched of a table that seems to have none", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(24), orders: hours(3, 1) });
    const source = new Hiding(run, rows, { literal: true, times: short });
    source.isHidden = (ts, { table, from = 0n }) => table === "orders" && from === 0n && ts < at(5);
    const seen = new SeenSource({ routes: ["orders"], empty: {} });
    const { manifest } = await tables.archiveRun(source, { seen });
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
    await tables.expectRows("orders", source.tables.get("orders")!);
  });

  // more would be asked of each honest table, each night
  it("are asked for once at each end, and not where facts count or the outer ends asked just that", async () => {
    const within = [
      [at(0), at(2)],
      [at(21) + 1n, at(23) + 1n],
    ] as const;
    for (const [manners, asked] of [
      [{ literal: true }, within],
      [{ literal: true, final: false }, within.slice(0, 1)],
      [{}, []],
    ] as const) {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(20, 2) }), { times: short, ...manners });
      const { manifest } = await tables.archiveRun(source);
      expect(manifest.tables.fills!.attempt.outcome).toBe("ok");
      const isEnd = ({ from, to }: RowRequest) => from === at(0) || (from! > at(20) && to! < at(24));
      const narrow = probesOf(source).filter(isEnd);
      expect(narrow.map(({ from, to }) => [from, to])).toEqual(asked);
    }
  });
});
