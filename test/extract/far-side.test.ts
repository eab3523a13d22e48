import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
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
