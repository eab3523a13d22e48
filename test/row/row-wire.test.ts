// @module-tag slow
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { PreviewTableResponseSchema } from "../../src/gen/example/history/v1/history_service_pb.ts";
import {
  type Column,
  type Table,
  type TableName,
  tableNamed,
  tableNames,
  tables,
} from "../../src/model/profile/table.ts";
import { canonicalLine, type Row } from "../../src/row/line.ts";
import { rowMessage } from "../../src/row/wire/row-message.ts";
import { RowWire } from "../../src/row/wire/row-wire.ts";
import { lineOf } from "../fixtures/served/rpc-clients.ts";
import { rowOf } from "../fixtures/served/serve-source.ts";

const int64 = (low: bigint, high: bigint) =>
  fc.oneof(
    fc.constantFrom(0n, 1n, 127n, 128n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n + 1n, low, high),
    fc.bigInt({ min: low, max: high }),
    // short ones, which a uniform choice never gives
    fc.integer({ min: 0, max: 1_000_000 }).map(BigInt),
  );

const text = fc.oneof(
  fc.constant(""),
  fc.string({ unit: "grapheme", maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 20 }).filter((value) => value.isWellFormed()),
  fc.constantFrom(
    '"',
    "\\",
    "\u0000\u001f\u007f\u2028",
    "Ünï",
    "😀",
    "\n\r\t\b\f",
    '{"a":"b\\""}',
    "x".repeat(20_000),
  ),
);

function cellOf({ kind }: Column): fc.Arbitrary<string | number | bigint> {
  switch (kind) {
    case "uint64":
      return int64(0n, 2n ** 64n - 1n);
    case "int64":
    case "timestamp":
      return int64(-(2n ** 63n), 2n ** 63n - 1n);
    case "uint32":
      return fc.oneof(fc.constantFrom(0, 1, 2 ** 32 - 1), fc.nat());
    case "double":
      return fc.oneof(
        fc.double(),
        fc.constantFrom(0, -0, Number.NaN, Infinity, -Infinity, 5e-324, 1e21, 1e-7),
      );
    case "exact":
      return fc.constantFrom("", "0", "-0.5", "27000.25", "123456789012345678.123456789");
    case "string":
      return text;
  }
}

function rowsOf({ columns }: Table): fc.Arbitrary<Row> {
  return fc.record(Object.fromEntries(columns.map((column) => [column.name, cellOf(column)])));
}

/** The rows of a wire as canonical lines, by protobuf-es. */
function decoded(table: TableName, wire: Uint8Array): string[] {
  const { rows } = fromBinary(PreviewTableResponseSchema, wire);
  return rows.map(({ row }) => lineOf(table, row.value));
}

/** Whole lines of text, every one written, by whichever way it takes; how many took the fast one. */
function written(wire: RowWire, text: string): number {
  const bytes = Buffer.from(text);
  let canonical = 0;
  for (let at = 0; at < bytes.length; ) {
    const next = wire.appendCanonical(bytes, at);
    if (next !== -1) canonical += 1;
    const end = bytes.indexOf(10, at);
    if (next === -1) wire.appendLine(bytes.subarray(at, end), "the row");
    else expect(next).toBe(end + 1);
    at = end + 1;
  }
  return canonical;
}

test.each(tables)("what is written of canonical lines of $name reads back as the same lines", (table) => {
  fc.assert(
    fc.property(fc.array(rowsOf(table), { maxLength: 8 }), fc.nat(64), (rows, expectedBytes) => {
      const lines = rows.map((row) => canonicalLine(table, row));
      const wire = new RowWire(table, "preview", expectedBytes);
      expect(written(wire, lines.map((line) => `${line}\n`).join(""))).toBe(lines.length);
      expect(wire.rows).toBe(lines.length);
      expect(decoded(table.name, wire.written())).toEqual(lines);
    }),
    { numRuns: 60 },
  );
});

test.each(tables)("the bytes of canonical lines of $name are those that protobuf-es writes", (table) => {
  fc.assert(
    fc.property(fc.array(rowsOf(table), { minLength: 1, maxLength: 4 }), (rows) => {
      const wire = new RowWire(table, "preview", 100);
      const text = rows.map((row) => `${canonicalLine(table, row)}\n`).join("");
      written(wire, text);
      const message = fromBinary(PreviewTableResponseSchema, wire.written());
      expect(Buffer.from(wire.written()).equals(toBinary(PreviewTableResponseSchema, message))).toBe(true);
    }),
    { numRuns: 30 },
  );
});

test.each(tables)("lines of $name in another form are the same rows", (table) => {
  fc.assert(
    fc.property(rowsOf(table), (row) => {
      const line = canonicalLine(table, row);
      const entries = [...line.matchAll(/[{,](\s*"(?:[^"\\]|\\.)*")\s*:("(?:[^"\\]|\\.)*"|[^,}]+)/g)];
      const members = entries.map(([, key, value]) => `${key} :\t${value}`);
      const wire = new RowWire(table, "preview", 100);
      expect(written(wire, ` {${members.reverse().join(" , ")} }\r\n`)).toBe(0);
      expect(decoded(table.name, wire.written())).toEqual([line]);
      const canonical = new RowWire(table, "preview", 100);
      written(canonical, `${line}\n`);
      expect([wire.eventHigh, wire.eventLow]).toEqual([canonical.eventHigh, canonical.eventLow]);
    }),
    { numRuns: 40 },
  );
});

const extra = fc
  .dictionary(
    text,
    fc.jsonValue({ maxDepth: 3 }).filter((value) => JSON.stringify(value).isWellFormed()),
    { maxKeys: 4 },
  )
  .map((members) => `,"extra":${JSON.stringify(members)}}`);

test.each(tables)("what no column takes of $name is left out, whatever it is", (table) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(rowsOf(table), extra), { maxLength: 4 }), (rows) => {
      const lines = rows.map(([row]) => canonicalLine(table, row));
      const whole = rows.map(([, members], i) => `${lines[i]!.slice(0, -1)}${members}`);
      const wire = new RowWire(table, "preview", 100);
      expect(written(wire, whole.map((line) => `${line}\n`).join(""))).toBe(lines.length);
      for (const line of whole) wire.appendLine(Buffer.from(` ${line}\r`), "the row");
      expect(decoded(table.name, wire.written())).toEqual([...lines, ...lines]);
    }),
    { numRuns: 20 },
  );
});

test("zeros are left out and minus zero is not", () => {
  const table = tableNamed("factors");
  const sizeOf = (value: number) => {
    const wire = new RowWire(table, "plain", 100);
    written(wire, `${canonicalLine(table, rowOf("factors", { instance_id: "", run_id: "", value }))}\n`);
    return wire.size;
  };
  // tag and length of an empty message, then a tag and eight bytes
  expect([sizeOf(0), sizeOf(-0), sizeOf(1)]).toEqual([2, 11, 11]);
});

const fill = canonicalLine(tableNamed("fills"), rowOf("fills", { seq: "7", ts_event: "5", symbol: "BTC" }));
function drifted(key: string, base64: string): string {
  return fill.replace(/\}$/, `,"${key}":"${base64}"}`);
}
const factor = canonicalLine(tableNamed("factors"), rowOf("factors", { value: 1.5 }));

test.each<[string, TableName, string | Uint8Array]>([
  ["half a line", "fills", fill.slice(0, 100)],
  ["no object", "fills", "[]"],
  ["null", "fills", "null"],
  ["text behind the object", "fills", `${fill}x`],
  ["a missing key", "fills", fill.replace('"seq":"7",', "")],
  ["an unknown key", "fills", fill.replace('"seq"', '"seqq":"1","seq"')],
  ["the number of a field that has a name", "fills", drifted("#3", "GAE=")],
  ["a field number that is none", "fills", drifted("#0", "AAE=")],
  ["a field number beyond all", "fills", drifted("#536870912", "gICAgBAB")],
  ["a field number with a zero before it", "fills", drifted("#01000", "wD4B")],
  ["an unknown field twice", "fills", drifted("#1000", "wD4B").replace(/\}$/, ',"#1000":"wD4B"}')],
  ["an unknown field that is another", "fills", drifted("#1001", "wD4B")],
  ["an unknown field with another behind it", "fills", drifted("#1000", "wD4ByD4B")],
  ["an unknown field that is cut", "fills", drifted("#1000", "wD4=")],
  ["an unknown field that is a group", "fills", drifted("#1000", "wz7EPg==")],
  ["an unknown field of nothing", "fills", drifted("#1000", "")],
  ["an unknown field that is no base64", "fills", drifted("#1000", "wD4B!")],
  ["an unknown field in loose base64", "fills", drifted("#1000", "wD4_")],
  ["an unknown field that is a number", "fills", drifted("#1000", "x").replace('"x"', "1")],
  ["an unknown field that is a list", "fills", drifted("#1000", "x").replace('"x"', '["wD4B"]')],
  ["extra that is no object", "fills", fill.replace(/\}$/, ',"extra":[{}]}')],
  ["extra that does not end", "fills", fill.replace(/\}$/, ',"extra":{"a":{}}')],
  ["extra that ends too early", "fills", fill.replace(/\}$/, ',"extra":{}}}')],
  ["an escaped line end in extra", "fills", fill.replace(/\}$/, ',"extra":{"a":"\\\n"}}')],
  ["a column behind extra", "fills", fill.replace(/\}$/, ',"extra":{},"symbol":"ETH","x":{}}')],
  ["extra within another key", "fills", fill.replace(/\}$/, ',"x":{"y":1,"extra":{}}}')],
  ["a key twice", "fills", fill.replace('"seq":"7"', '"seq":"7","seq":"8"')],
  ["the JSON name of a key beside it", "fills", fill.replace('"ts_event"', '"tsEvent":"1","ts_event"')],
  ["null for a value", "fills", fill.replace('"BTC"', "null")],
  ["a 64-bit integer as a number", "fills", fill.replace('"7"', "7")],
  ["a 64-bit integer that is rounded", "fills", fill.replace('"7"', "9007199254740993")],
  ["a word for an integer", "fills", fill.replace('"7"', '"abc"')],
  ["a negative number for an unsigned one", "fills", fill.replace('"7"', '"-7"')],
  ["a number beyond 64 bits", "fills", fill.replace('"7"', '"18446744073709551616"')],
  ["a time beyond 64 bits", "fills", fill.replace('"ts_event":"5"', '"ts_event":"9223372036854775808"')],
  ["a number far beyond 64 bits", "fills", fill.replace('"7"', `"${"9".repeat(40)}"`)],
  ["a number for a text", "fills", fill.replace('"BTC"', "12")],
  ["half a character, escaped", "fills", fill.replace("BTC", "\\ud800")],
  ["the other half first", "fills", fill.replace("BTC", "\\udc00\\ud800")],
  ["an escape that is none", "fills", fill.replace("BTC", "\\x41")],
  ["a control character", "fills", fill.replace("BTC", "B\tC")],
  ["bytes that are no UTF-8", "fills", Buffer.from(fill.replace("BTC", "\xff\xfe"), "latin1")],
  ["a number beyond doubles", "factors", factor.replace("1.5", "1e999")],
  ["no number", "factors", factor.replace("1.5", "1.")],
  ["a hexadecimal number", "factors", factor.replace("1.5", "0x10")],
  ["an object for a value", "factors", factor.replace("1.5", '{"a":1}')],
])("a line with %s is an error that names its row", (_name, tableName, line) => {
  const table = tableNamed(tableName);
  const wire = new RowWire(table, "plain", 100);
  const bytes = Buffer.from(line);
  expect(wire.appendCanonical(Buffer.concat([bytes, Buffer.from("\n")]), 0)).toBe(-1);
  expect(() => wire.appendLine(bytes, "row 3")).toThrow(
    expect.objectContaining({
      code: "history_query_failed",
      message: expect.stringMatching(/^row 3 does not fit/),
    }),
  );
  expect([wire.rows, wire.size]).toEqual([0, 0]);
});

test("any bytes after any canonical beginning are written right, or refused, and never read beyond", () => {
  fc.assert(
    fc.property(
      fc
        .constantFrom(...tableNames)
        .chain((name) => fc.tuple(fc.constant(tableNamed(name)), rowsOf(tableNamed(name)))),
      fc.nat(),
      fc.uint8Array({ minLength: 1, maxLength: 4 }),
      ([table, row], place, noise) => {
        const line = Buffer.from(`${canonicalLine(table, row)}\n`);
        const at = place % line.length;
        const noisy = Buffer.concat([line.subarray(0, at), noise, line.subarray(at + noise.length)]);
        const wire = new RowWire(table, "plain", 50);
        const end = wire.appendCanonical(noisy, 0);
        if (end === -1) expect([wire.rows, wire.size]).toEqual([0, 0]);
        else {
          const careful = new RowWire(table, "plain", 50);
          careful.appendLine(noisy.subarray(0, end - 1), "the row");
          expect(Buffer.from(wire.written()).equals(careful.written())).toBe(true);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test("a message written from its bytes is the row itself, wrapped", () => {
  const table = tableNamed("fills");
  const wire = new RowWire(table, "preview", 10);
  for (const symbol of ["A", "B".repeat(300), "C".repeat(40_000)]) {
    const before = wire.size;
    written(wire, `${canonicalLine(table, rowOf("fills", { symbol }))}\n`);
    const message = Uint8Array.from(wire.lastMessage());
    const once = Buffer.from(wire.written().subarray(before));
    wire.dropLast();
    expect(wire.size).toBe(before);
    wire.appendMessage(message);
    expect(once.equals(wire.written().subarray(before))).toBe(true);
    expect(toBinary(rowMessage(table), fromBinary(rowMessage(table), message))).toEqual(message);
  }
  expect(
    create(PreviewTableResponseSchema, fromBinary(PreviewTableResponseSchema, wire.written())).rows,
  ).toHaveLength(3);
});
