// @module-tag slow
import { describe, expect, it } from "vitest";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import type { SliceWork } from "../../src/extract/fetch/slice.ts";
import { showWholeEnd } from "../../src/extract/proof/capped-end.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { type ErrorCode, RunvaultError } from "../../src/model/error.ts";
import { type TableName, tableNamed } from "../../src/model/profile/table.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { takenSlice } from "../fixtures/source/taken-slice.ts";

const run = { instanceId: "alpha", runId: "r-1" };
const start = 1_640_995_200_000_000_000n;
const later = (...at: number[]) => at.map((ns) => start + BigInt(ns));
const times = (count: number, at: number) => Array<bigint>(count).fill(start + BigInt(at));
const worldOf = (rows: readonly ArrayRow[]) => new Map<TableName, ArrayRow[]>([["fills", [...rows]]]);
const fillsAt = (at: readonly bigint[], symbols?: string[]) => rowsAt(run, "fills", at, symbols);

/** Fetches all that a source holds of a table, and gives the lines as they are stored. */
async function fetched(
  source: ArraySource,
  how: {
    facts?: boolean;
    mostBytes?: number;
    seesLarger?: boolean;
    onLost?: NonNullable<SliceWork["onLost"]>;
  } = {},
): Promise<string[]> {
  const { facts = false, mostBytes = 64 << 20 } = how;
  const seen = new SeenSource();
  if (how.seesLarger) seen.answered("bars", { rows: 100_000, bytes: 1 << 30, wireBytes: 1 << 30 });
  const table = "fills";
  const work: SliceWork = {
    source,
    pool: new BufferPool(3, 5000),
    segmentBytes: 4000,
    mostBytes,
    retry: quickRetry({ retries: 2 }),
    signal: new AbortController().signal,
    countRows: facts ? async (from, to) => source.rowsWithin(table, { from, to }).length : undefined,
    onRows: () => {},
    ...(how.onLost && { onLost: how.onLost }),
    seen,
  };
  const expected = facts ? source.rowsWithin(table, {}).length : undefined;
  const bounds = { from: start, to: start + 1_000_000n };
  const named = tableNamed(table);
  const slice = { run, table: named, bucket: "all", ...bounds, expected };
  const { segments, openEnd } = await takenSlice(slice, work);
  const lines = segments.flatMap(({ draft, text }) => {
    const stored = text.split("\n").slice(0, -1);
    expect(draft.rows).toBe(stored.length);
    return stored;
  });
  if (openEnd !== null) await showWholeEnd({ ...work, run, table: named }, openEnd, mostBytes, work.seen);
  return lines;
}

const linesOf = (rows: readonly ArrayRow[]) => rows.map(({ line }) => line);

/** Takes every answer's rows away that `hides` names, deterministically. */
class HidingSource extends ArraySource {
  hides: (row: ArrayRow, request: RowRequest) => boolean = () => false;
  override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    const rows = this.rowsWithin(request.table, request).filter((row) => !this.hides(row, request));
    yield Buffer.from(
      rows
        .slice(0, Math.min(this.manners.cap ?? rows.length, request.limit ?? rows.length))
        .map(({ line }) => `${line}\n`)
        .join(""),
    );
  }
}

/** Gives so many rows to whoever names no limit, and refuses a limit above the largest. */
class LimitedSource extends ArraySource {
  usual = 1000;
  largest = Number.POSITIVE_INFINITY;
  refusal: ErrorCode = "invalid_argument";
  override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    if ((request.limit ?? 0) > this.largest) throw new RunvaultError(this.refusal, `limit ${request.limit}`);
    yield* super.rows({ ...request, limit: request.limit ?? this.usual });
  }
}

const open = (rows: readonly ArrayRow[], manners: Manners = {}) =>
  new ArraySource(run, worldOf(rows), manners);

describe("a timestamp of more rows than the gateway gives, where nothing counts them", () => {
  it("is found when an answer that ended inside it was as long as the next", async () => {
    const rows = fillsAt([...later(...Array(400).keys()), ...times(1500, 900)]);
    await expect(fetched(open(rows, { cap: 1000 }))).rejects.toMatchObject({ code: "unverified" });
  });

  it.each([
    ["by turns", fillsAt(times(1500, 5), ["A", "B", "C"])],
    [
      "one behind the other",
      fillsAt(times(1500, 5)).map((row, i) => withSymbol(row, `S${Math.floor(i / 400)}`)),
    ],
  ])("is found by a filter when it is all there is, with symbols %s", async (_, rows) => {
    const source = open(rows, { cap: 1000 });
    await expect(fetched(source)).rejects.toMatchObject({ code: "timestamp_capped" });
    expect(source.asked.length).toBeLessThan(9);
  });

  it("is proven by larger answers, not by filters that bring no other row", async () => {
    const rows = fillsAt(times(300, 5), ["A", "B", "C"]);
    const source = open(rows);
    await expect(fetched(source)).rejects.toMatchObject({ code: "unverified" });
    // two looks at it, one behind it, one for its rows, and each of the five filters once
    expect(source.asked.length).toBeLessThanOrEqual(9);
    source.asked.length = 0;
    expect(await fetched(source, { seesLarger: true })).toEqual(linesOf(rows));
    expect(source.asked.length).toBeLessThanOrEqual(3);
  });

  it("costs nothing where a longer answer was seen", async () => {
    const source = open(fillsAt([...later(1, 2, 3), ...times(2, 9)], ["A", "B"]));
    await fetched(source);
    expect(source.asked.filter(({ filters }) => filters !== undefined)).toEqual([]);
  });

  it("comes whole where the gateway gives more to whoever asks for more", async () => {
    const rows = fillsAt([
      ...later(...Array(400).keys()),
      ...times(1500, 900),
      ...times(1200, 950),
      ...later(999),
    ]);
    expect(await fetched(new LimitedSource(run, worldOf(rows)))).toEqual(linesOf(rows));
  });
});

function withSymbol(row: ArrayRow, symbol: string): ArrayRow {
  return { ...row, symbol, line: row.line.replace(`"symbol":"${row.symbol}"`, `"symbol":"${symbol}"`) };
}

describe("rows that were there and are not when asked for again", () => {
  const rows = fillsAt(later(1, 2, 2, 2, 3));
  it.each([
    ["all of them", (row: ArrayRow) => row.ts === start + 2n],
    ["one of them", (row: ArrayRow) => row.seq === 4n],
  ])("%s", async (_, gone) => {
    const source = new HidingSource(run, worldOf(rows), { cap: 4 });
    source.hides = (row, { from }) => from === start + 2n && gone(row);
    await expect(fetched(source)).rejects.toMatchObject({
      code: "incomplete",
      message: `rows at ts_event ${start + 2n} came once, but not when asked for again`,
    });
  });
});

// caught by: an alarm about a gateway that forgets its oldest rows, here those of an instant that is asked for again
it("rows that are gone with all before them are a later beginning: the rest comes whole", async () => {
  const rows = fillsAt(later(1, 2, 2, 3, 4));
  const source = new HidingSource(run, worldOf(rows), { cap: 3 });
  let answers = 0;
  source.hides = ({ ts }) => answers > 1 && ts <= start + 2n;
  const all = source.rows.bind(source);
  source.rows = (request) => {
    answers++;
    return all(request);
  };
  const lost: object[] = [];
  expect(await fetched(source, { seesLarger: true, onLost: (_, came) => lost.push(came) })).toEqual(
    linesOf(rows.slice(3)),
  );
  // what came all the same is evidence
  expect(lost).toContainEqual(expect.objectContaining({ from: start + 1n, to: start + 3n, rows: 3 }));
});

describe("a gateway that refuses a large limit", () => {
  it.each(["invalid_argument", "limit_exceeded"] as const)(
    "with %s is asked without one",
    async (refusal) => {
      const rows = fillsAt(times(5, 1));
      const source = new LimitedSource(run, worldOf(rows));
      Object.assign(source, { largest: 1000, refusal });
      expect(await fetched(source, { seesLarger: true })).toEqual(linesOf(rows));
    },
  );

  it("is asked with the largest that it took", async () => {
    const rows = fillsAt([...times(26_000, 1), ...later(2)]);
    const source = new LimitedSource(run, worldOf(rows));
    source.largest = 100_000;
    expect(await fetched(source, { facts: true })).toEqual(linesOf(rows));
  });

  it("gives the parts of a capped timestamp without one as well", async () => {
    const rows = fillsAt([...times(150, 1), ...later(2)], ["A", "B", "C"]);
    const source = new LimitedSource(run, worldOf(rows), { cap: 100 });
    source.largest = 100;
    expect(await fetched(source, { facts: true })).toEqual(linesOf(rows));
  });

  it("still says so when it refuses the question itself", async () => {
    class Refusing extends ArraySource {
      override async *rows(): AsyncIterable<Uint8Array> {
        yield* [];
        throw new RunvaultError("invalid_argument", "no");
      }
    }
    await expect(fetched(new Refusing(run, worldOf([])))).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("a line that is no row", () => {
  const broken = (rows: readonly ArrayRow[], ...at: number[]) =>
    rows.map((row, i) =>
      at.includes(i) ? { ...row, line: row.line.replace(/"seq":"(\d+)"/, '"seq":$1') } : row,
    );

  /**
   * The line joins its neighbours to a group of five at most, which an answer has to hold. Without counts, an answer that
   * ends with the line is not told from one that a cap ended ahead of it.
   */
  const mayFail = (facts: boolean, cap: number, bad: number) => (facts ? cap < 5 : cap < 8 || bad === 6);

  it.each([false, true])(
    "comes once wherever it stands and wherever answers end (counted: %s)",
    async (facts) => {
      const whole = fillsAt(later(1, 2, 2, 3, 4, 4, 5));
      for (let bad = 0; bad < whole.length; bad++) {
        const rows = broken(whole, bad);
        const ends = rows.map((_, i) => linesOf(rows.slice(0, i + 1)).join("\n").length + 1);
        for (const end of [undefined, ...ends, ...ends.map((at) => at - 40)]) {
          for (const cap of [2, 3, 4, 5, 100]) {
            const source = open(rows, { cap, cuts: [end] });
            const outcome = await fetched(source, { facts }).catch((error: RunvaultError) => error.code);
            if (typeof outcome === "string" && mayFail(facts, cap, bad)) continue;
            expect({ bad, end, cap, outcome }).toEqual({ bad, end, cap, outcome: linesOf(rows) });
          }
        }
      }
    },
  );

  it("among the rows of a timestamp that has to be split ends the table, not the run", async () => {
    const rows = fillsAt(times(6, 1), ["A", "B", "C"]);
    for (const bad of rows.keys()) {
      const hurt = rows.map((row, i) => (i === bad ? { ...row, line: row.line.slice(0, -3) } : row));
      await expect(fetched(open(hurt, { cap: 4 }), { facts: true })).rejects.toMatchObject({
        code: "incomplete",
      });
    }
  });

  it("is not gathered without end when there are no others", async () => {
    const rows = broken(fillsAt(later(...Array(400).keys())), ...Array(400).keys());
    const source = open(rows);
    await expect(fetched(source, { facts: true, mostBytes: 100_000 })).rejects.toMatchObject({
      code: "malformed_row",
    });
  });

  it("as the document of resources leaves the values of the rows to split by", async () => {
    const rows = fillsAt([...times(6, 1), ...later(2)], ["A", "B", "C"]);
    for (const text of ["{", '{"resources":{}}', '{"resources":[null]}']) {
      const source = open(rows, { cap: 4 });
      source.document = async () => Buffer.from(text);
      expect(await fetched(source, { facts: true })).toEqual(linesOf(rows));
    }
  });

  it("is one whose ts_event no 64-bit integer holds, however it is written", async () => {
    const rows = fillsAt(later(1, 2, 3));
    for (const absurd of ["9223372036854775808", "9999999999999999999", "-9223372036854775809"]) {
      for (const blank of ["", " "]) {
        const line = rows[1]!.line.replace(/"ts_event":"\d+"/, `"ts_event":${blank}"${absurd}"`);
        const hurt = [rows[0]!, { ...rows[1]!, line }, rows[2]!];
        expect(await fetched(open(hurt), { facts: true })).toEqual(linesOf(hurt));
        expect(await fetched(open(hurt), { seesLarger: true })).toEqual(linesOf(hurt));
      }
    }
  });
});
