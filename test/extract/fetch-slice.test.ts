// @module-tag slow
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import type { SegmentDraft, SliceWork } from "../../src/extract/fetch/slice.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { takenSlice } from "../fixtures/source/taken-slice.ts";

const run = { instanceId: "alpha", runId: "r-1" };
const table = tableNamed("factors");

async function fetched(
  times: readonly bigint[],
  manners: Manners,
  options: { expected?: boolean; segmentBytes?: number } = {},
) {
  const rows = rowsAt(run, "factors", times);
  const source = new ArraySource(run, new Map([["factors", rows]]), manners);
  const segmentBytes = options.segmentBytes ?? 2000;
  const work: SliceWork = {
    source,
    pool: new BufferPool(3, segmentBytes + 1024),
    segmentBytes,
    mostBytes: 64 << 20,
    retry: quickRetry({ retries: 2 }),
    signal: new AbortController().signal,
    countRows: manners.literal
      ? undefined
      : async (from, to) => source.rowsWithin("factors", { from, to }).length,
    onRows: () => {},
    seen: new SeenSource(),
  };
  const expected = options.expected ? rows.length : undefined;
  const slice = { run, table, bucket: "all", from: 0n, to: 1000n, expected };
  const { segments: stored } = await takenSlice(slice, work);
  return {
    stored,
    lines: stored.map(({ text }) => text).join(""),
    world: rows.map(({ line }) => `${line}\n`).join(""),
    source,
  };
}

/** Worlds with many ties: times out of a small range. */
const times = fc.array(fc.integer({ min: 0, max: 30 }).map(BigInt), { maxLength: 120 });

/** A gateway that counts so few rows of a window and gives up to `most`; how many rows it got rid of. */
async function endless(expected: number, isFinal: boolean, most = 400_000) {
  let given = 0;
  const source = new ArraySource(run, new Map([["factors", []]]));
  const [sample] = rowsAt(run, "factors", [1n]);
  source.rows = async function* () {
    for (; given < most; given += 1000) {
      const lines = Array.from({ length: 1000 }, (_, i) =>
        sample!.line
          .replace(/"seq":"\d+"/, `"seq":"${given + i + 1}"`)
          .replace(/"ts_event":"\d+"/, `"ts_event":"${given + i}"`),
      );
      yield Buffer.from(`${lines.join("\n")}\n`);
    }
  };
  const work: SliceWork = {
    source,
    pool: new BufferPool(3, 1 << 20),
    segmentBytes: 1 << 19,
    mostBytes: 64 << 20,
    retry: quickRetry({ retries: 2 }),
    signal: new AbortController().signal,
    countRows: async () => expected,
    onRows: () => {},
    seen: new SeenSource(),
  };
  const slice = { run, table, bucket: "all", from: 0n, to: 1_000_000n, expected, isFinal };
  const error = await takenSlice(slice, work).catch((thrown: unknown) => thrown);
  return { given, error };
}

describe("fetching a slice", () => {
  it("stops where a finished run's rows exceed their count many times over", async () => {
    const { given, error } = await endless(500, true);
    expect(error).toMatchObject({
      code: "incomplete",
      scope: "table",
      message: expect.stringContaining("the gateway counts 500 rows in this window, but sent 10"),
    });
    expect(given).toBeLessThan(110_000);
    // counts of a run that goes on may lag far behind its rows
    expect((await endless(500, false, 150_000)).given).toBe(150_000);
  });

  it("brings every row once, in order, whatever the chunks, the cuts and the size of segments", async () => {
    await fc.assert(
      fc.asyncProperty(
        times,
        fc.integer({ min: 1, max: 5000 }),
        fc.array(fc.option(fc.integer({ min: 0, max: 30_000 }), { nil: undefined }), { maxLength: 2 }),
        fc.integer({ min: 300, max: 8000 }),
        fc.boolean(),
        fc.boolean(),
        async (at, chunkBytes, cuts, segmentBytes, expected, literal) => {
          const { lines, world, stored } = await fetched(
            at,
            { chunkBytes, cuts, literal },
            { expected, segmentBytes },
          );
          expect(lines).toBe(world);
          for (const [i, { draft, text }] of stored.entries()) {
            expect(draft.from).toBe(i === 0 ? "0" : stored[i - 1]!.draft.to);
            const lines = text.split("\n").slice(0, -1);
            expect(lines.length).toBe(draft.rows);
            expect(Math.max(...lines.map((line) => Buffer.byteLength(line)))).toBe(draft.longestLine);
          }
          if (stored.length > 0) expect(stored.at(-1)!.draft.to).toBe("1000");
        },
      ),
      { numRuns: 300 },
    );
  });

  it("brings every row through any cap that is larger than the largest tie", async () => {
    await fc.assert(
      fc.asyncProperty(times, fc.integer({ min: 1, max: 20 }), fc.boolean(), async (at, more, literal) => {
        const counts = new Map<bigint, number>();
        for (const ts of at) counts.set(ts, (counts.get(ts) ?? 0) + 1);
        const cap = Math.max(0, ...counts.values()) + more;
        const { lines, world } = await fetched(at, { cap, literal });
        expect(lines).toBe(world);
      }),
      { numRuns: 300 },
    );
  });

  it("cuts segments at the same rows however often the stream was cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        times,
        fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 2 }),
        async (at, cuts) => {
          const whole = await fetched(at, {});
          const hurt = await fetched(at, { cuts });
          expect(hurt.stored).toEqual(whole.stored);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("names the timestamp when one holds more rows than the gateway gives", async () => {
    const at = [1n, 2n, ...Array<bigint>(20).fill(5n), 9n];
    await expect(fetched(at, { cap: 10 })).rejects.toMatchObject({ code: "timestamp_capped" });
    await expect(fetched(at, { cap: 10, literal: true })).rejects.toMatchObject({
      code: "timestamp_capped",
      message: expect.stringContaining("ts_event 5 "),
    });
  });

  it("gives up on a stream that is always cut at the same place, with the cut as the reason", async () => {
    const cuts = Array<number>(10).fill(100);
    await expect(fetched([1n, 2n, 3n], { cuts })).rejects.toMatchObject({
      code: "stream_cut",
      place: { table: "factors" },
    });
  });

  it("refuses two rows with one key", async () => {
    const rows = rowsAt(run, "factors", [1n, 2n]);
    const other = { ...rows[0]!, line: rows[0]!.line.replace("{", "{ ") };
    const source = new ArraySource(run, new Map([["factors", [rows[0]!, other, rows[1]!]]]));
    const text = fetchFrom(source, 3);
    await expect(text).rejects.toMatchObject({ code: "duplicate_row" });
  });

  // the only one in which a body that is joined to another begins with the row that the other ended with
  it("refuses a row that comes again where two bodies meet: places moved, and hid another", async () => {
    const rows = rowsAt(run, "factors", [1n, 2n, 3n]);
    const source = new ArraySource(run, new Map([["factors", rows]]));
    source.rows = async function* ({ onBody }) {
      for (const body of [rows.slice(0, 2), rows.slice(1)]) {
        onBody?.({ bytes: 1, ms: 1 });
        yield Buffer.from(body.map(({ line }) => `${line}\n`).join(""));
      }
    };
    await expect(fetchFrom(source, 3)).rejects.toMatchObject({ code: "duplicate_row" });
  });

  it("does not read one row for ever", async () => {
    const [row] = rowsAt(run, "factors", [1n]);
    const source = new ArraySource(run, new Map([["factors", [row!]]]));
    const text = Buffer.from(`${row!.line}\n`.repeat(1000));
    source.rows = async function* () {
      for (;;) yield text;
    };
    await expect(fetchFrom(source, 2)).rejects.toMatchObject({ code: "duplicate_row" });
  });

  it("takes rows out of order as one unsorted window when the counts prove them whole", async () => {
    const rows = rowsAt(run, "factors", [1n, 2n, 3n, 4n]);
    const source = new ArraySource(run, new Map([["factors", [rows[0]!, rows[2]!, rows[1]!, rows[3]!]]]));
    const drafts = await fetchFrom(source, 4);
    expect(drafts.map(({ rows, sorted }) => ({ rows, sorted }))).toEqual([{ rows: 4, sorted: false }]);
  });

  it("gives up on rows out of order that are always cut, with the cut as the reason", async () => {
    const rows = rowsAt(run, "factors", [1n, 2n, 3n, 4n]);
    const cuts = [undefined, ...Array<number>(10).fill(1200)];
    const tables = new Map([["factors" as const, [rows[0]!, rows[2]!, rows[1]!, rows[3]!]]]);
    const source = new ArraySource(run, tables, { cuts, chunkBytes: 1 << 20 });
    await expect(fetchFrom(source, 4)).rejects.toMatchObject({ code: "stream_cut" });
    // what showed the order, and as many as the policy has attempts
    expect(source.asked).toHaveLength(4);
  });

  it("refuses another run's rows and rows outside the window", async () => {
    const foreign = rowsAt({ ...run, runId: "r-2" }, "factors", [1n]);
    const other = new ArraySource(run, new Map([["factors", foreign]]));
    await expect(fetchFrom(other, 1)).rejects.toMatchObject({ code: "history_identity_conflict" });
    // the window is [2, 1000): the source believes that these rows lie in it
    for (const ts of [1n, 1000n]) {
      const rows = rowsAt(run, "factors", [ts]).map((row) => ({ ...row, ts: 500n }));
      const outside = new ArraySource(run, new Map([["factors", rows]]));
      await expect(fetchFrom(outside, 1, 2n)).rejects.toMatchObject({ code: "history_identity_conflict" });
    }
  });
});

async function fetchFrom(source: ArraySource, expected: number, from = 0n): Promise<SegmentDraft[]> {
  const work: SliceWork = {
    source,
    pool: new BufferPool(3, 4096),
    segmentBytes: 2000,
    mostBytes: 64 << 20,
    retry: quickRetry({ retries: 2 }),
    signal: new AbortController().signal,
    countRows: undefined,
    onRows: () => {},
    seen: new SeenSource(),
  };
  const { segments } = await takenSlice({ run, table, bucket: "all", from, to: 1000n, expected }, work);
  return segments.map(({ draft }) => draft);
}
