import { expect, test } from "vitest";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import { segmentsOf } from "../../src/extract/fetch/fetch-slice.ts";
import type { FetchedSegment, SliceWork } from "../../src/extract/fetch/slice.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const run = { instanceId: "alpha", runId: "r-1" };
const table = tableNamed("factors");
const rows = rowsAt(
  run,
  "factors",
  Array.from({ length: 100 }, (_, i) => BigInt(Math.floor(i / 3))),
);
const slice = { run, table, bucket: "all", from: 0n, to: 1000n, expected: rows.length };
const buffers = 3;

/** Tells whether every buffer came back: as many as there are can be taken again, and no more. */
async function freeIn(pool: BufferPool): Promise<number> {
  let taken = 0;
  for (let i = 0; i <= buffers; i++) void pool.acquire().then(() => taken++);
  await new Promise(setImmediate);
  return taken;
}

class OpenAnswers extends ArraySource {
  open = 0;
  override async *rows(request: RowRequest): AsyncGenerator<Uint8Array> {
    this.open++;
    try {
      yield* super.rows(request);
    } finally {
      this.open--;
    }
  }
}

function workOn(manners: Manners, given = rows) {
  const source = new OpenAnswers(run, new Map([["factors", given]]), manners);
  const work: SliceWork = {
    source,
    pool: new BufferPool(buffers, 4096),
    segmentBytes: 2000,
    mostBytes: 64 << 20,
    retry: quickRetry({ retries: 2 }),
    signal: new AbortController().signal,
    countRows: async (from, to) => source.rowsWithin("factors", { from, to }).length,
    onRows: () => {},
    seen: new SeenSource(),
  };
  return { source, work };
}

test.each<[string, Manners, ArrayRow[]?]>([
  ["whole answers", {}],
  ["a cap", { cap: 17 }],
  ["rows in another order", {}, [...rows.slice(40), ...rows.slice(0, 40)]],
])(
  "whoever stops after any event leaves no buffer and no answer behind: %s",
  async (_what, manners, given) => {
    let events = 0;
    for (let stopAt = 1, isOver = false; !isOver; stopAt++) {
      const { source, work } = workOn(manners, given);
      let seen = 0;
      isOver = true;
      for await (const event of segmentsOf(slice, work)) {
        if (event.kind === "segment") event.release();
        seen++;
        if (seen < stopAt) continue;
        isOver = false;
        break;
      }
      expect({ stopAt, open: source.open, free: await freeIn(work.pool) }).toEqual({
        stopAt,
        open: 0,
        free: buffers,
      });
      events = seen;
    }
    expect(events).toBeGreaterThan(3);
  },
);

test("a slice that fails leaves no buffer behind", async () => {
  const { source, work } = workOn({});
  const foreign = rowsAt({ ...run, runId: "r-2" }, "factors", [900n]);
  source.rows = async function* () {
    yield Buffer.from([...rows, ...foreign].map(({ line }) => `${line}\n`).join(""));
  };
  const take = async () => {
    for await (const event of segmentsOf(slice, work)) if (event.kind === "segment") event.release();
  };
  await expect(take()).rejects.toMatchObject({ code: "history_identity_conflict" });
  expect(await freeIn(work.pool)).toBe(buffers);
});

test("rows come in while the segments before are in the taker's hands, until no buffer is free", async () => {
  const { work } = workOn({});
  const held: FetchedSegment[] = [];
  const events = segmentsOf(slice, work);
  const take = async () => {
    const { value } = await events.next();
    if (value?.kind === "segment") held.push(value);
  };
  for (let i = 1; i < buffers; i++) await take();
  expect(held.map(({ draft }) => draft.from)).toHaveLength(buffers - 1);
  // the last buffer holds the rows behind; the next cut needs one more
  const next = take();
  expect(
    await Promise.race([
      next.then(() => "taken"),
      new Promise((resolve) => setTimeout(resolve, 50, "waits")),
    ]),
  ).toBe("waits");
  held[0]!.release();
  await next;
  expect(held).toHaveLength(buffers);
  await events.return();
});
