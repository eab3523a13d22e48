// @module-tag slow
import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ListMarketBarsResponseSchema,
  ListPortfolioMetricsResponseSchema,
  ListPortfolioSeriesResponseSchema,
  PreviewTableResponseSchema,
} from "../../src/gen/example/history/v1/history_service_pb.ts";
import { FillSchema } from "../../src/gen/example/history/v1/rows_pb.ts";
import { RunvaultError } from "../../src/model/error.ts";
import {
  type Column,
  type Table,
  type TableName,
  tableNamed,
  tables,
} from "../../src/model/profile/table.ts";
import { int64Max, int64Min } from "../../src/model/time.ts";
import { canonicalLine, type Row } from "../../src/row/line.ts";
import { indexPage, pageLayout } from "../../src/row/wire/page-index.ts";
import { rowMessage } from "../../src/row/wire/row-message.ts";
import { RowTranscoder } from "../../src/row/wire/row-transcoder.ts";
import { transcoded } from "../fixtures/source/transcoded.ts";

const pages: readonly (readonly [TableName, DescMessage])[] = [
  ...tables.map(({ name }) => [name, PreviewTableResponseSchema] as const),
  ["bars", ListMarketBarsResponseSchema],
  ["equity", ListPortfolioSeriesResponseSchema],
  ["metrics", ListPortfolioMetricsResponseSchema],
];

// plain text, text that JSON escapes, and text of every plane, around the lengths at which words end
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: "grapheme-ascii", maxLength: 40 }),
  fc.constantFrom(
    "",
    '"',
    "\\",
    "\u0000",
    "\u007f",
    "a\nb",
    "\u2028",
    "Ünï",
    "日本",
    "🂡",
    "\ufeffx",
    "abcd",
    "abcde\u001f",
  ),
);

function anyValue(column: Column): fc.Arbitrary<string | number | bigint> {
  switch (column.kind) {
    case "uint64":
      return fc.oneof(
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.constantFrom(0n, 9n, 10n, 9999n, 10_000n, 2n ** 53n - 1n, 2n ** 53n, 10n ** 18n, 2n ** 64n - 1n),
      );
    case "int64":
    case "timestamp":
      return fc.oneof(
        fc.bigInt({ min: int64Min, max: int64Max }),
        fc.constantFrom(0n, -1n, int64Min, int64Max, -(2n ** 32n), 2n ** 32n, 1_640_995_260_000_000_001n),
      );
    case "uint32":
      return fc.oneof(fc.nat(), fc.constantFrom(0, 2 ** 32 - 1));
    case "double":
      return fc.oneof(
        fc.double(),
        fc.constantFrom(-0, 0, Number.NaN, Infinity, -Infinity, 5e-324, 1e21, 0.1),
      );
    case "exact":
    case "string":
      return text.filter((value) => value.isWellFormed());
  }
}

const rowOf = (table: Table): fc.Arbitrary<Row> =>
  fc.record(Object.fromEntries(table.columns.map((column) => [column.name, anyValue(column)])));

/** The row as its message, as protobuf-es has it. */
function messageOf(table: Table, row: Row): Message {
  const fields = rowMessage(table).fields.map((field) => [field.localName, row[field.name]]);
  return create(rowMessage(table), Object.fromEntries(fields));
}

/** A page of the rows: the messages' bytes, in the wrapper that the page's descriptor has for them. */
function pageOf(table: Table, page: DescMessage, rows: readonly Uint8Array[], token = ""): Uint8Array {
  const { rows: number, member } = pageLayout(table, page);
  const writer = new BinaryWriter();
  for (const row of rows) {
    writer.tag(number, WireType.LengthDelimited);
    if (member === undefined) writer.bytes(row);
    else writer.fork().tag(member, WireType.LengthDelimited).bytes(row).join();
  }
  if (token !== "") writer.tag(2, WireType.LengthDelimited).string(token);
  return writer.finish();
}

function transcode(table: Table, page: DescMessage, bytes: Uint8Array, mostRows = 1000) {
  const index = indexPage(bytes, pageLayout(table, page), mostRows);
  const { chunks, ...rest } = transcoded(new RowTranscoder(table).transcode(index));
  return { text: Buffer.concat(chunks).toString("utf8"), token: index.nextToken, ...rest };
}

describe.each(pages)("rows of %s in %s", (name, page) => {
  const table = tableNamed(name);

  test("become the canonical lines that their values have", () => {
    fc.assert(
      fc.property(fc.array(rowOf(table), { maxLength: 4 }), text, (rows, token) => {
        const bytes = pageOf(
          table,
          page,
          rows.map((row) => toBinary(rowMessage(table), messageOf(table, row))),
          token,
        );
        const lines = rows.map((row) => `${canonicalLine(table, row)}\n`);
        expect(transcode(table, page, bytes)).toMatchObject({
          text: lines.join(""),
          token,
          rows: rows.length,
        });
      }),
    );
  });

  test("are written in the descriptor's order, whatever order the wire has", () => {
    fc.assert(
      fc.property(rowOf(table), fc.infiniteStream(fc.nat()), (row, random) => {
        const fields = fieldsOf(table, row);
        const shuffled = fields
          .map((bytes) => [random.next().value as number, bytes] as const)
          .sort(([a], [b]) => a - b)
          .map(([, bytes]) => bytes);
        const bytes = pageOf(table, page, [Buffer.concat(shuffled)]);
        expect(transcode(table, page, bytes).text).toBe(`${canonicalLine(table, row)}\n`);
      }),
    );
  });

  test("that are damaged on the way are refused, or are what protobuf-es reads", () => {
    const damaged = fc.record({
      rows: fc.array(rowOf(table), { minLength: 1, maxLength: 2 }),
      flips: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { maxLength: 3 }),
      cut: fc.option(fc.nat()),
    });
    fc.assert(
      fc.property(damaged, ({ rows, flips, cut }) => {
        const whole = Buffer.from(
          pageOf(
            table,
            page,
            rows.map((row) => toBinary(rowMessage(table), messageOf(table, row))),
            "t",
          ),
        );
        for (const [at, mask] of flips) whole[at % whole.length]! ^= mask;
        const bytes = whole.subarray(0, cut === null ? whole.length : cut % (whole.length + 1));
        let lines: string[];
        try {
          lines = transcode(table, page, bytes).text.split("\n").slice(0, -1);
        } catch (thrown) {
          if (!(thrown instanceof RunvaultError) || thrown.code !== "malformed_row") throw thrown;
          return;
        }
        // what protobuf-es refuses we may not take, and what both take is the same
        expect(lines.map(withoutDrift)).toEqual(linesByMessages(table, page, bytes));
      }),
      { numRuns: 400 },
    );
  });
});

const fills = tableNamed("fills");
const fill = (...fields: Uint8Array[]) => pageOf(fills, PreviewTableResponseSchema, [Buffer.concat(fields)]);
const field = (
  number: number,
  write: (writer: BinaryWriter) => BinaryWriter,
  type = WireType.LengthDelimited,
) => write(new BinaryWriter().tag(number, type)).finish();
const texted = (number: number, value: string) => field(number, (writer) => writer.string(value));
const numbered = (number: number, value: bigint) =>
  field(number, (writer) => writer.uint64(value), WireType.Varint);
const transcodeFill = (...fields: Uint8Array[]) =>
  transcode(fills, PreviewTableResponseSchema, fill(...fields));

test("fields that are left out are written as zero", () => {
  expect(transcodeFill().text).toMatch(
    /^\{"run_id":"","instance_id":"","seq":"0","ts_event":"0",.*"liquidity":""\}\n$/,
  );
});

test("a field that the contract does not know is kept at the line's end, under its number, as its bytes", () => {
  const unknown = [numbered(99, 5n), texted(70, "new"), numbered(99, 6n)];
  const { text } = transcodeFill(texted(1, "r"), ...unknown, texted(19, "MAKER"));
  const row = JSON.parse(text) as Record<string, string>;
  expect(Object.keys(row).slice(-3)).toEqual(["liquidity", "#70", "#99"]);
  expect(row.run_id).toBe("r");
  expect(row.liquidity).toBe("MAKER");
  expect(Buffer.from(row["#70"]!, "base64")).toEqual(Buffer.from(unknown[1]!));
  expect(Buffer.from(row["#99"]!, "base64")).toEqual(Buffer.concat([unknown[0]!, unknown[2]!]));
});

test("a row has room for a thousand unknown fields, of whatever numbers, and no more", () => {
  const same = (count: number) => Array.from({ length: count }, () => numbered(99, 1n));
  const rising = (count: number) => Array.from({ length: count }, (_, i) => numbered(1000 + i, 1n));
  expect(JSON.parse(transcodeFill(...same(1000)).text)).toHaveProperty("#99");
  expect(JSON.parse(transcodeFill(...rising(1000)).text)).toHaveProperty("#1999");
  for (const fields of [same(1001), rising(1001)]) {
    expect(() => transcodeFill(...fields)).toThrow(expect.objectContaining({ code: "malformed_row" }));
  }
  // of each row, for a page has many
  const rows = [1, 2].map(() => Buffer.concat(rising(600)));
  const page = pageOf(fills, PreviewTableResponseSchema, rows);
  expect(transcode(fills, PreviewTableResponseSchema, page).rows).toBe(2);
});

test("a page has as many rows as were asked for, and no more: empty ones take two bytes each", () => {
  const bars = tableNamed("bars");
  const empty = (count: number) => Buffer.alloc(count * 2, Buffer.of(0x0a, 0x00));
  expect(transcode(bars, ListMarketBarsResponseSchema, empty(50), 50).rows).toBe(50);
  expect(() => transcode(bars, ListMarketBarsResponseSchema, empty(51), 50)).toThrow(
    expect.objectContaining({ code: "refused" }),
  );
  const wrapped = pageOf(
    bars,
    PreviewTableResponseSchema,
    [1, 2, 3].map(() => Buffer.alloc(0)),
  );
  expect(() => transcode(bars, PreviewTableResponseSchema, wrapped, 2)).toThrow(
    expect.objectContaining({ code: "refused" }),
  );
});

test.each([
  ["a field set twice", [texted(1, "r"), texted(1, "r")]],
  ["a field set twice, apart", [texted(1, "r"), texted(2, "i"), texted(1, "r")]],
  ["text where a number belongs", [texted(3, "1")]],
  ["a number where text belongs", [numbered(1, 1n)]],
  ["text that is no UTF-8", [field(1, (writer) => writer.bytes(Uint8Array.of(0x61, 0xff, 0x61, 0x61)))]],
  ["half a surrogate pair in UTF-8", [field(1, (writer) => writer.bytes(Uint8Array.of(0xed, 0xa0, 0x80)))]],
  ["a varint of more than 64 bits", [Uint8Array.of(0x18, ...new Array(9).fill(0xff), 0x02)]],
  ["a varint without an end", [Uint8Array.of(0x18, ...new Array(12).fill(0xff))]],
  ["a length beyond the row", [Uint8Array.of(0x0a, 0x05, 0x61)]],
  ["a length beyond 32 bits", [Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)]],
  ["a group", [Uint8Array.of(0x0b, 0x0c)]],
  ["a field of number 0", [Uint8Array.of(0x02, 0x00)]],
  ["a tag alone", [Uint8Array.of(0x0a)]],
])("%s is refused", (_, fields) => {
  expect(() => transcodeFill(...(fields as Uint8Array[]))).toThrow(
    expect.objectContaining({ code: "malformed_row" }),
  );
});

test("a level beyond 32 bits is refused, for no level is that deep", () => {
  const book = tableNamed("order_book");
  const number = rowMessage(book).field.level!.number;
  const page = pageOf(book, PreviewTableResponseSchema, [numbered(number, 2n ** 32n)]);
  expect(() => transcode(book, PreviewTableResponseSchema, page)).toThrow(/level does not fit 32 bits/);
});

test("a row of another table, of none, and one set twice are refused", () => {
  const wrapped = (...members: Uint8Array[]) => field(1, (writer) => writer.bytes(Buffer.concat(members)));
  const row = texted(1, "r");
  const asFill = field(1, (writer) => writer.bytes(row));
  const asOrder = field(2, (writer) => writer.bytes(row));
  for (const page of [wrapped(asOrder), wrapped(), wrapped(asFill, asFill), wrapped(asFill, asOrder)]) {
    expect(() => transcode(fills, PreviewTableResponseSchema, page)).toThrow(
      expect.objectContaining({ code: "malformed_row" }),
    );
  }
  expect(transcode(fills, PreviewTableResponseSchema, wrapped(asFill)).rows).toBe(1);
});

test("the key of the first row is told, in halves of 64 bits", () => {
  const at = (ts: bigint, seq: bigint) =>
    Buffer.concat([numbered(3, seq), numbered(4, BigInt.asUintN(64, ts))]);
  const told = (...rows: Uint8Array[]) =>
    transcode(fills, PreviewTableResponseSchema, pageOf(fills, PreviewTableResponseSchema, rows)).first;
  expect(told(at(-5n, 9n), at(2n, 10n))).toEqual({
    tsHigh: -1,
    tsLow: 2 ** 32 - 5,
    seqHigh: 0,
    seqLow: 9,
  });
  expect(told(at(2n ** 32n, 2n ** 63n + 1n))).toEqual({ tsHigh: 1, tsLow: 0, seqHigh: 2 ** 31, seqLow: 1 });
  expect(told()).toBeUndefined();
});

test("a line longer than 16 MiB ends the page by name", () => {
  expect(() => transcodeFill(texted(1, "\u0001".repeat(3 * 1024 * 1024)))).toThrow(
    expect.objectContaining({ code: "line_too_long" }),
  );
});

/** Each field's bytes, zero ones included. */
function fieldsOf(table: Table, row: Row): Uint8Array[] {
  return rowMessage(table).fields.map((desc) => {
    const only = Object.fromEntries(table.columns.map(({ name, kind }) => [name, zeroOf(kind)]));
    return toBinary(rowMessage(table), messageOf(table, { ...only, [desc.name]: row[desc.name]! }));
  });
}

function zeroOf(kind: Column["kind"]): string | number | bigint {
  if (kind === "string" || kind === "exact") return "";
  return kind === "double" || kind === "uint32" ? 0 : 0n;
}

/** The lines by the slow way: protobuf-es reads the page, and each message's values make the line. */
function linesByMessages(table: Table, page: DescMessage, bytes: Uint8Array): string[] {
  const message = fromBinary(page, bytes) as unknown as { rows: readonly Message[] };
  return message.rows.map((row) => {
    const member = "row" in row ? (row as unknown as { row: { value: Message } }).row.value : row;
    const values = member as unknown as Record<string, string | number | bigint>;
    return canonicalLine(
      table,
      Object.fromEntries(rowMessage(table).fields.map(({ name, localName }) => [name, values[localName]!])),
    );
  });
}

/** A line without what the contract does not know, which protobuf-es leaves out too. */
function withoutDrift(line: string): string {
  return line.replace(/(?:,"#\d+":"[A-Za-z0-9+/=]*")+\}$/, "}");
}

test("two pages that are read in turns do not mix", () => {
  const lineOfPage = (symbol: string) => {
    const rows = Array.from({ length: 6000 }, (_, i) =>
      toBinary(FillSchema, create(FillSchema, { seq: BigInt(i), symbol })),
    );
    return indexPage(
      pageOf(fills, PreviewTableResponseSchema, rows),
      pageLayout(fills, PreviewTableResponseSchema),
      6000,
    );
  };
  const transcoder = new RowTranscoder(fills);
  const pair = ["AAA", "BBB"].map((symbol) => transcoder.transcode(lineOfPage(symbol)));
  const texts: string[] = [];
  let steps = 0;
  while (texts.length < 2) {
    for (const page of pair) {
      const step = page.next();
      if (step.done && step.value !== undefined) texts.push(Buffer.concat(step.value.chunks).toString());
      else steps++;
    }
  }
  expect(steps).toBeGreaterThan(4);
  for (const [i, symbol] of ["AAA", "BBB"].entries()) {
    const lines = texts[i]!.trim().split("\n");
    expect(lines).toHaveLength(6000);
    expect(lines.every((line) => line.includes(`"symbol":"${symbol}"`))).toBe(true);
  }
});
