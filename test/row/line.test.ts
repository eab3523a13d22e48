import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Column, type Table, tableNamed, tables } from "../../src/model/profile/table.ts";
import { int64Max, int64Min } from "../../src/model/time.ts";
import { canonicalDouble, canonicalLine, type Row } from "../../src/row/line.ts";
import { rowMessage } from "../../src/row/wire/row-message.ts";

const text = fc.string({ unit: "binary", maxLength: 20 });
const exact = fc
  .tuple(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), fc.integer({ min: 0, max: 9 }))
  .map(([units, scale]) => `${units}.${"1".repeat(scale + 1)}`);

/** Any legal value of a column. */
function anyValue(column: Column): fc.Arbitrary<string | number | bigint> {
  switch (column.kind) {
    case "uint64":
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    case "int64":
    case "timestamp":
      return fc.bigInt({ min: int64Min, max: int64Max });
    case "uint32":
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    case "double":
      return fc.double();
    case "exact":
      return fc.oneof(exact, fc.constant(""));
    case "string":
      return text;
  }
}

function rowOf(table: Table): fc.Arbitrary<Row> {
  return fc.record(Object.fromEntries(table.columns.map((column) => [column.name, anyValue(column)])));
}

describe.each(tables.map((table) => [table.name, table] as const))("the canonical line of %s", (_, table) => {
  test("is the row's JSON: every value as it was, in proto order, on one line, without blanks", () => {
    fc.assert(
      fc.property(rowOf(table), (row) => {
        const line = canonicalLine(table, row);
        expect(line).not.toContain("\n");
        const parsed = JSON.parse(line) as Record<string, string | number>;
        expect(Object.keys(parsed)).toEqual(rowMessage(table).fields.map((field) => field.name));
        // JSON.stringify prints -0 as 0, the canonical line keeps it
        const members = Object.entries(parsed).map(
          ([name, value]) => `"${name}":${Object.is(value, -0) ? "-0" : JSON.stringify(value)}`,
        );
        expect(line).toBe(`{${members.join(",")}}`);
        for (const { name, kind } of table.columns) {
          const value = row[name]!;
          if (kind === "double") expect(Number(parsed[name])).toBe(value);
          else expect(parsed[name]).toBe(kind === "uint32" ? value : String(value));
        }
      }),
    );
  });

  test("of a row read from its canonical line is that line again", () => {
    fc.assert(
      fc.property(rowOf(table), (row) => {
        const line = canonicalLine(table, row);
        expect(canonicalLine(table, JSON.parse(line) as Row)).toBe(line);
      }),
    );
  });

  test("does not depend on the order of the row's keys", () => {
    fc.assert(
      fc.property(rowOf(table), (row) => {
        const turned = Object.fromEntries(Object.entries(row).reverse());
        expect(canonicalLine(table, turned)).toBe(canonicalLine(table, row));
      }),
    );
  });

  test("is refused where a column is missing", () => {
    const [row] = fc.sample(rowOf(table), 1);
    for (const { name } of table.columns) {
      const { [name]: _missing, ...rest } = row!;
      expect(() => canonicalLine(table, rest)).toThrow(expect.objectContaining({ code: "malformed_row" }));
    }
  });
});

test.each([
  [0, "0"],
  [-0, "-0"],
  [1, "1"],
  [0.1, "0.1"],
  [1e21, "1e+21"],
  [1e-7, "1e-7"],
  [5e-324, "5e-324"],
  [Number.NaN, '"NaN"'],
  [Number.POSITIVE_INFINITY, '"Infinity"'],
  [Number.NEGATIVE_INFINITY, '"-Infinity"'],
])("the double %d is printed as %s", (value, printed) => {
  expect(canonicalDouble(value)).toBe(printed);
});

test("control characters are escaped in lower case, other characters stay", () => {
  const events = tableNamed("events");
  const [row] = fc.sample(rowOf(events), 1);
  const line = canonicalLine(events, { ...row, message: '\u0007\u001f\n\t"\\/\u007f\u2028é漢🚀' });
  expect(line).toContain('"message":"\\u0007\\u001f\\n\\t\\"\\\\/\u007f\u2028é漢🚀"');
});

test.each([
  ["seq", 2 ** 53],
  ["seq", 1.5],
  ["seq", "1.5"],
  ["seq", ""],
  ["seq", "01"],
  ["ts_event", "1e18"],
  ["value", ""],
  ["value", "high"],
  ["value", "0x10"],
])("a factor whose %s is %j is refused, not altered", (name, value) => {
  const factors = tableNamed("factors");
  const [row] = fc.sample(rowOf(factors), 1);
  expect(() => canonicalLine(factors, { ...row, [name]: value })).toThrow(
    expect.objectContaining({ code: "malformed_row" }),
  );
});
