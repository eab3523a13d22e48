// @module-tag slow
import { access } from "node:fs/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canonicalLineSql, rowHashSql } from "../../src/duckdb/canonical-sql.ts";
import { fileList } from "../../src/duckdb/sql.ts";
import { type Column, type Table, tableNamed, tables } from "../../src/model/profile/table.ts";
import { canonicalLine, type Row } from "../../src/row/line.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import {
  ConvertFixture,
  instanceId,
  runId,
  sampleLine,
  sampleRow,
} from "../fixtures/archive/convert-fixture.ts";

let fixture: ConvertFixture;
beforeAll(async () => {
  fixture = await ConvertFixture.open();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.constantFrom(
    "",
    "12",
    "2026-01-01",
    "a/b",
    "Ünï",
    "null",
    "true",
    "1e5",
    "\u2028\u007f",
    '"\\/\b\f\n\r\t\u0000\u001f',
    "😀",
    "'",
    "*",
    "a,b|c;d\te",
  ),
);

const decimal = fc
  .tuple(fc.bigInt(-999_999_999_999_999_999n, 999_999_999_999_999_999n), fc.integer({ min: 0, max: 9 }))
  .map(([digits, scale]) => {
    const sign = digits < 0n ? "-" : "";
    const all = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, "0");
    // at most nine digits on either side of the point, as DECIMAL(18,9) holds them
    const whole = all
      .slice(0, all.length - scale)
      .slice(-9)
      .replace(/^0+(?=.)/, "");
    const fraction = (scale === 0 ? "" : all.slice(-scale)).replace(/0+$/, "");
    return `${/[1-9]/.test(whole + fraction) ? sign : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
  });

function value(column: Column): fc.Arbitrary<string | number> {
  switch (column.kind) {
    case "uint64":
      return fc
        .oneof(fc.bigInt(0n, 18_446_744_073_709_551_615n), fc.constantFrom(0n, 18_446_744_073_709_551_615n))
        .map(String);
    case "int64":
      return fc
        .oneof(
          fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
          fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 9_007_199_254_740_993n),
        )
        .map(String);
    case "timestamp":
      return fc
        .oneof(
          fc.bigInt(-9_223_372_036_854_775_806n, 9_223_372_036_854_775_806n),
          fc.constantFrom(
            1_640_995_260_000_000_001n,
            0n,
            -1n,
            9_223_372_036_854_775_806n,
            -9_223_372_036_854_775_806n,
          ),
        )
        .map(String);
    case "uint32":
      return fc.oneof(fc.nat(), fc.constantFrom(0, 4_294_967_295));
    case "double":
      return fc.oneof(
        fc.double(),
        fc.constantFrom(
          -0,
          0,
          1e21,
          1e20,
          1e16,
          1e-6,
          1e-7,
          5e-324,
          0.1,
          Number.NaN,
          Number.POSITIVE_INFINITY,
        ),
      );
    case "exact":
      return fc.oneof(
        decimal,
        fc.constantFrom("", "0", "999999999.999999999", "-999999999.999999999", "0.000000001"),
      );
    case "string":
      return text.filter((value) => value.isWellFormed());
  }
}

function rows(table: Table): fc.Arbitrary<Row[]> {
  const model = Object.fromEntries(table.columns.map((column) => [column.name, value(column)]));
  return fc.array(
    fc.record(model).map((row) => ({ ...row, run_id: runId, instance_id: instanceId })) as fc.Arbitrary<Row>,
    {
      minLength: 1,
      maxLength: 30,
    },
  );
}

function byKey(a: Row, b: Row): number {
  const [ts, seq] = [
    BigInt(a.ts_event ?? 0) - BigInt(b.ts_event ?? 0),
    BigInt(a.seq ?? 0) - BigInt(b.seq ?? 0),
  ];
  return Number(ts !== 0n ? (ts > 0n ? 1 : -1) : seq > 0n ? 1 : seq < 0n ? -1 : 0);
}

describe("negative zeros", () => {
  it("keep their sign among thousands of rows with few values", async () => {
    const factors = tables.find(({ name }) => name === "factors")!;
    const lines = Array.from({ length: 5000 }, (_, i) =>
      sampleLine(factors, { seq: String(i + 1), value: i % 3 === 0 ? -0 : 0 }),
    );
    const segment = await fixture.segment(lines.map((line) => `${line}\n`).join(""));
    const { out } = await fixture.convert(factors, [segment]);
    expect(await fixture.lines(factors, out)).toEqual(lines);
  });
});

describe("every row goes into Parquet and comes back as the line it was", () => {
  it.each(tables.map((table) => [table.name, table] as const))("%s", async (_, table) => {
    await fc.assert(
      fc.asyncProperty(rows(table), async (unsorted) => {
        const sorted = unsorted.toSorted(byKey);
        const lines = sorted.map((row) => canonicalLine(table, row));
        const cut = Math.floor(lines.length / 2);
        const parts = [lines.slice(0, cut), lines.slice(cut)].map((part) =>
          part.map((line) => `${line}\n`).join(""),
        );
        const segments = await Promise.all(parts.map((part) => fixture.segment(part)));
        const result = await fixture.convert(table, segments);
        expect(result.rows).toBe(lines.length);
        expect(result).toMatchObject({ drift: [], resorted: false });
        expect(result.first?.ts).toBe(BigInt(sorted[0]?.ts_event ?? 0));
        expect(result.last?.ts).toBe(BigInt(sorted.at(-1)?.ts_event ?? 0));
        expect(result.first?.seq).toBe(BigInt(sorted[0]?.seq ?? 0));
        expect(result.last?.seq).toBe(BigInt(sorted.at(-1)?.seq ?? 0));
        expect(await fixture.lines(table, result.out)).toEqual(lines);
        const [hash] = await fixture.query(
          rowHashSql(canonicalLineSql(table), `read_parquet(${fileList([result.out])})`),
        );
        const expected = await rowHash(lines);
        expect(hash?.map(String)).toEqual([String(expected.rows), String(expected.hash)]);
      }),
      { numRuns: 6 },
    );
  });
});

describe("conversion", () => {
  const fills = tableNamed("fills");

  it("gives each column the type of its kind, with the ids inside the file", async () => {
    const { out } = await fixture.convert(fills, [await fixture.segment(`${sampleLine(fills)}\n`)], {
      exactTypes: { price: "DECIMAL(18,9)", quantity: "DECIMAL(38,18)", fee: "DECIMAL(18,4)" },
    });
    const types = await fixture.query(`SELECT column_name, column_type FROM (DESCRIBE FROM '${out}')`);
    expect(Object.fromEntries(types)).toMatchObject({
      run_id: "VARCHAR",
      instance_id: "VARCHAR",
      seq: "UBIGINT",
      ts_event: "TIMESTAMP_NS",
      price: "DECIMAL(18,9)",
      quantity: "DECIMAL(38,18)",
      fee: "DECIMAL(18,4)",
      symbol: "VARCHAR",
    });
  });

  it("keeps an absent exact number as NULL and an empty string as an empty string", async () => {
    const { out } = await fixture.convert(fills, [
      await fixture.segment(`${sampleLine(fills, { fee: "", liquidity: "" })}\n`),
    ]);
    expect(await fixture.query(`SELECT fee, liquidity FROM '${out}'`)).toEqual([[null, ""]]);
  });

  it.each(["12", "2026-01-01", "a/b", "Ünï", "it's", 'say "hi"\\', "null"])(
    "keeps the run id %j as text",
    async (id) => {
      const line = canonicalLine(fills, sampleRow(fills, { run_id: id, instance_id: id }));
      const { out } = await fixture.convert(fills, [await fixture.segment(`${line}\n`)], {
        runId: id,
        instanceId: id,
      });
      expect(
        await fixture.query(`SELECT DISTINCT run_id, instance_id, typeof(run_id) FROM '${out}'`),
      ).toEqual([[id, id, "VARCHAR"]]);
    },
  );

  it("keeps the order of many segments without a sort", async () => {
    const lines = Array.from({ length: 6_000 }, (_, i) =>
      sampleLine(fills, { seq: String(i), ts_event: String(1_000 + (i >> 3)), trade_id: `t${i}` }),
    );
    const segments = [];
    for (let at = 0; at < lines.length; at += 500)
      segments.push(await fixture.segment(`${lines.slice(at, at + 500).join("\n")}\n`));
    const result = await fixture.convert(fills, segments);
    expect(result.resorted).toBe(false);
    expect(await fixture.lines(fills, result.out)).toEqual(lines);
  });

  it.each([true, false])(
    "sorts rows that stand out of order, whether that was seen before (%s) or not",
    async (seen) => {
      const keys = [
        ["3", "9"],
        ["1", "2"],
        ["2", "18446744073709551615"],
        ["2", "4"],
        ["-5", "8"],
      ];
      const lines = keys.map(([ts = "", seq = ""]) => sampleLine(fills, { ts_event: ts, seq }));
      const result = await fixture.convert(fills, [
        await fixture.segment(`${lines.join("\n")}\n`, { sorted: !seen }),
      ]);
      expect(result).toMatchObject({
        resorted: true,
        first: { ts: -5n, seq: 8n },
        last: { ts: 3n, seq: 9n },
      });
      expect(await fixture.lines(fills, result.out)).toEqual([4, 1, 3, 2, 0].map((i) => lines[i]));
    },
  );

  it.each([true, false])(
    "refuses two rows of one key that had to be sorted, whether that was seen before (%s) or not",
    async (seen) => {
      const keys = [
        ["2", "2"],
        ["1", "1"],
        ["2", "2"],
        ["3", "1"],
      ];
      const lines = keys.map(([ts = "", seq = ""]) => sampleLine(fills, { ts_event: ts, seq }));
      const segment = await fixture.segment(`${lines.join("\n")}\n`, { sorted: !seen });
      await expect(fixture.convert(fills, [segment])).rejects.toMatchObject({
        code: "duplicate_row",
        message: "two rows share ts_event 2 and seq 2",
      });
    },
  );

  it("writes a file without rows for a bucket without rows", async () => {
    for (const segments of [[], [await fixture.segment("")]]) {
      const result = await fixture.convert(
        fills,
        segments.map((segment) => ({ ...segment, rows: 0 })),
      );
      expect(result).toMatchObject({ rows: 0, first: undefined, last: undefined });
      expect(await fixture.query(`SELECT count(*) FROM '${result.out}'`)).toEqual([["0"]]);
    }
  });

  it("takes a last line without its line end as the row it is", async () => {
    expect(await fixture.convert(fills, [await fixture.segment(sampleLine(fills))])).toMatchObject({
      rows: 1,
    });
  });

  it("reads a line of a megabyte and more", async () => {
    const events = tableNamed("events");
    const line = sampleLine(events, { payload: JSON.stringify({ text: "é\n".repeat(250_000) }) });
    const result = await fixture.convert(events, [
      await fixture.segment(`${line}\n`, { longestLine: Buffer.byteLength(line) }),
    ]);
    expect(await fixture.lines(events, result.out)).toEqual([line]);
  });

  it("finds it when a segment holds other than its counted lines, and leaves no file", async () => {
    const segment = await fixture.segment(`${sampleLine(fills)}\n`, { rows: 2 });
    const out = `${fixture.dir}/short.parquet`;
    await expect(fixture.convert(fills, [segment], { out })).rejects.toMatchObject({
      code: "incomplete",
      message: "2 lines became 1 rows",
    });
    await expect(access(out)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("reports a segment that is gone", async () => {
    const segment = await fixture.segment(`${sampleLine(fills)}\n`);
    await expect(
      fixture.convert(fills, [{ ...segment, file: `${segment.file}.gone` }]),
    ).rejects.toMatchObject({ name: "RunvaultError" });
  });
});
