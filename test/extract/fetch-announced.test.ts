import { expect, it } from "vitest";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import type { SliceWork } from "../../src/extract/fetch/slice.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { int64Max, int64Min } from "../../src/model/time.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { takenSlice } from "../fixtures/source/taken-slice.ts";

const run = { instanceId: "alpha", runId: "r-1" };
const rows = rowsAt(
  run,
  "factors",
  Array.from({ length: 30 }, (_, i) => BigInt(10 + i)),
);

interface Manner {
  /** Most rows of an answer. */
  readonly cap?: number;
  /** Answers to the open question that leave a row out. */
  readonly drops?: number;
  /** Rows behind which the first answer is cut, and whether it had announced anything by then. */
  readonly cutBehind?: number;
  readonly announcesEarly?: boolean;
}

/** Rows, or the error, of a source that announces each answer's rows as pages do; and how often it began anew. */
async function fetched({ cap = 1000, drops = 0, cutBehind, announcesEarly }: Manner, isOpen = true) {
  const bounds = isOpen ? { from: int64Min, to: int64Max } : { from: 5n, to: 1000n };
  const source = new ArraySource(run, new Map([["factors", rows]]));
  let beginnings = 0;
  let isCut = cutBehind === undefined;
  source.rows = async function* ({ from, onTotal }) {
    const isFirst = from === undefined || from === 5n;
    if (isFirst) beginnings++;
    const within = rows.filter(({ line }) => from === undefined || timeOf(line) >= from);
    const kept = within.filter(({ line }) => beginnings > drops || timeOf(line) !== 20n).slice(0, cap);
    const total = BigInt(within.length);
    if (from === undefined && announcesEarly) onTotal?.(total);
    const cut = isCut ? kept : kept.slice(0, cutBehind);
    for (const { line } of cut) yield Buffer.from(`${line}\n`);
    if (!isCut) {
      isCut = true;
      throw new RunvaultError("stream_cut", "cut");
    }
    if (kept.length < within.length) onTotal?.(total, kept.length);
  };
  const work: SliceWork = {
    source,
    pool: new BufferPool(3, 4000),
    segmentBytes: 2000,
    mostBytes: 64 << 20,
    retry: quickRetry({ retries: 2 }),
    signal: new AbortController().signal,
    countRows: undefined,
    onRows: () => {},
    seen: new SeenSource(),
  };
  const slice = { run, table: tableNamed("factors"), bucket: "all", ...bounds, expected: undefined };
  const came = await takenSlice(slice, work).then(
    ({ segments }) => segments.map(({ text }) => text).join(""),
    (error: RunvaultError) => `${error.code}: ${error.message}`,
  );
  return { came, beginnings };
}

const timeOf = (line: string) => BigInt(/"ts_event":"(\d+)"/.exec(line)![1]!);
const all = rows.map(({ line }) => `${line}\n`).join("");
const short = "rows_missing: the gateway announced 30 rows, but sent 29";

// going on behind the last row, in place of the beginning, would give 29 rows as all of them
it.each([true, false])(
  "a slice with fewer rows than announced begins anew, once, and fails with both figures (open: %s)",
  async (isOpen) => {
    expect(await fetched({ drops: 1 }, isOpen)).toEqual({ came: all, beginnings: 2 });
    expect(await fetched({ drops: 9 }, isOpen)).toEqual({ came: short, beginnings: 2 });
  },
);

// a gateway that gives seven rows at a time and counts all would fail each night
it("an answer that a cap ended is gone on with: what comes behind it is what it announced", async () => {
  expect(await fetched({ cap: 7 })).toEqual({ came: all, beginnings: 1 });
  expect(await fetched({ cap: 7, drops: 9 })).toEqual({ came: short, beginnings: 2 });
});

// the end of the answer that is gone on with agrees with its own total
it("a cut does not hide what was announced ahead of it, nor what an answer behind it announces", async () => {
  expect(await fetched({ cutBehind: 15, announcesEarly: true })).toEqual({ came: all, beginnings: 1 });
  expect(await fetched({ cutBehind: 15, announcesEarly: true, drops: 9 })).toEqual({
    came: short,
    beginnings: 2,
  });
  expect(await fetched({ cutBehind: 5, drops: 9 })).toEqual({ came: short, beginnings: 2 });
});
