// @module-tag slow
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Conversion, SegmentInput } from "../../src/archive/convert/convert-segments.ts";
import { convertTogether, mayConvertTogether } from "../../src/archive/convert/convert-together.ts";
import { defaultExactTypes } from "../../src/model/profile/exact-types.ts";
import { type Table, tableNamed, tables } from "../../src/model/profile/table.ts";
import type { Row } from "../../src/row/line.ts";
import { ConvertFixture, sampleLine } from "../fixtures/archive/convert-fixture.ts";

let fixture: ConvertFixture;
let made = 0;
beforeAll(async () => {
  fixture = await ConvertFixture.open();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const fills = tableNamed("fills");
const start = 1_640_995_200_000_000_000n;
/** Ids that JSON, SQL and paths each write in their own way. */
const odd = ["r-1", `it's "r"`, "back\\slash", "ünï\u0001 ☃", "100%_of*[runs]"];

const line = (table: Table, runId: string, nth: number, values: Row = {}) =>
  `${sampleLine(table, { run_id: runId, ts_event: String(start + BigInt(nth)), seq: String(nth), ...values })}\n`;
const text = (table: Table, runId: string, rows: number, values: (nth: number) => Row = () => ({})) =>
  Array.from({ length: rows }, (_, nth) => line(table, runId, nth, values(nth))).join("");

function conversionOf(table: Table, runId: string, segments: readonly SegmentInput[]): Conversion {
  const out = join(fixture.dir, `together-${made++}.parquet`);
  return { table, instanceId: "inst", runId, segments, exactTypes: defaultExactTypes(table), out };
}

/** Each made together is the file that it would be by itself, byte for byte; `alone` are those that have to be. */
async function expectSame(conversions: readonly Conversion[], alone: readonly number[] = []) {
  const results = await convertTogether(fixture.db.connection, conversions);
  expect(results.flatMap((one, nth) => (one === undefined ? [nth] : []))).toEqual(alone);
  for (const [nth, conversion] of conversions.entries()) {
    if (results[nth] === undefined) continue;
    const { table, segments, runId } = conversion;
    const { out, ...own } = await fixture.convert(table, segments, { runId });
    expect(results[nth]).toEqual(own);
    expect((await readFile(conversion.out)).equals(await readFile(out))).toBe(true);
  }
}

describe("small conversions together", () => {
  it.each(tables.map((table) => [table.name, table] as const))(
    "make the files of %s that each would alone",
    async (_, table) => {
      const conversions = await Promise.all(
        odd.map(async (runId, nth) =>
          conversionOf(table, runId, [
            await fixture.segment(text(table, runId, 3 + nth)),
            await fixture.segment(line(table, runId, 100)),
          ]),
        ),
      );
      await expectSame(conversions);
    },
  );

  it("keep every double and every exact value", async () => {
    const factors = tableNamed("factors");
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.array(fc.oneof(fc.double(), fc.constantFrom(-0, 0, Number.NaN)), {
            minLength: 1,
            maxLength: 40,
          }),
          {
            minLength: 1,
            maxLength: 4,
          },
        ),
        async (runs) => {
          const conversions = await Promise.all(
            runs.map(async (values, run) => {
              const value = (nth: number) => ({ value: values[nth]! });
              const segment = await fixture.segment(text(factors, `r${run}`, values.length, value));
              return conversionOf(factors, `r${run}`, [segment]);
            }),
          );
          await expectSame(conversions);
        },
      ),
      { numRuns: 20 },
    );
    const prices = ["999999999.999999999", "-0.000000001", "", "0"];
    const price = (nth: number) => ({ price: prices[nth]! });
    await expectSame([
      conversionOf(fills, "r", [await fixture.segment(text(fills, "r", prices.length, price))]),
    ]);
  });

  it.each([
    ["a row of another run of the same statement", () => line(fills, "r-2", 1)],
    ["a row of another instance", () => line(fills, "r-1", 1, { instance_id: "other" })],
    ["a line that is no JSON", () => "no row\n"],
    ["an empty line", () => "\n"],
    ["a value that its column cannot hold", () => line(fills, "r-1", 1, { price: "1.0000000001" })],
    ["a line with blanks", () => line(fills, "r-1", 1).replace('{"', '{ "')],
    ["a field that the contract does not know", () => line(fills, "r-1", 1).replace("{", '{"new":1,')],
    ["a row that stands before its predecessor", () => line(fills, "r-1", -1)],
    [
      "a row that stands before its predecessor of the same time",
      () => [2, 1].map((seq) => line(fills, "r-1", 1, { seq: String(seq) })).join(""),
    ],
    [
      "bytes that are no UTF-8",
      () => Buffer.concat([Buffer.from(line(fills, "r-1", 1).trimEnd()), Buffer.from([0xff, 10])]),
    ],
  ])("leave to itself the run that has %s, and it alone", async (_, odd) => {
    const lines = Buffer.concat([Buffer.from(line(fills, "r-1", 0)), Buffer.from(odd())]);
    const conversions = [
      ...["r-0", "r-2", "r-3"].map(async (runId) =>
        conversionOf(fills, runId, [await fixture.segment(text(fills, runId, 5))]),
      ),
      (async () => conversionOf(fills, "r-1", [await fixture.segment(lines)]))(),
      (async () => conversionOf(fills, "r-4", [await fixture.segment(text(fills, "r-4", 2))]))(),
    ];
    await expectSame(await Promise.all(conversions), [3]);
  });

  it("leave to itself what begins with a byte order mark, and what has other lines than was said", async () => {
    const marked = await fixture.segment(`\uFEFF${text(fills, "r-1", 2)}`);
    const short = await fixture.segment(text(fills, "r-2", 2), { rows: 3 });
    const plain = await fixture.segment(text(fills, "r-3", 2));
    const disordered = [
      await fixture.segment(line(fills, "r-4", 5)),
      await fixture.segment(line(fills, "r-4", 1)),
    ];
    const conversions = [
      conversionOf(fills, "r-1", [marked]),
      conversionOf(fills, "r-2", [short]),
      conversionOf(fills, "r-3", [plain]),
      conversionOf(fills, "r-4", disordered),
    ];
    await expectSame(conversions, [0, 1, 3]);
  });

  it("are those of one table and its types, of lines that have to be canonical and in order", async () => {
    const segment = await fixture.segment(text(fills, "r", 1));
    const plain = conversionOf(fills, "r", [segment]);
    expect(mayConvertTogether(plain, conversionOf(fills, "r-2", [segment]))).toBe(true);
    for (const other of [
      { ...plain, table: tableNamed("orders") },
      { ...plain, exactTypes: { ...plain.exactTypes, price: "DECIMAL(38,18)" } },
      { ...plain, oddZeros: true },
      { ...plain, rowHash: { rows: 1n, hash: 1n } },
      { ...plain, segments: [{ ...segment, sorted: false }] },
      { ...plain, segments: [{ ...segment, checked: true }] },
    ])
      expect(mayConvertTogether(plain, other)).toBe(false);
  });

  it("throw what the disk says, and leave nothing in the way of the next", async () => {
    const segment = await fixture.segment(text(fills, "r", 1));
    const nowhere = {
      ...conversionOf(fills, "r", [segment]),
      out: join(fixture.dir, "missing", "a.parquet"),
    };
    await expect(convertTogether(fixture.db.connection, [nowhere])).rejects.toMatchObject({
      code: expect.stringMatching(/^storage_/),
    });
    await expectSame([conversionOf(fills, "r", [segment])]);
  });
});
