import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tableNamed } from "../../src/model/profile/table.ts";
import { canonicalDecimal, normalizedLine } from "../../src/row/same-line.ts";
import { smallWorld } from "../fixtures/archive/archived-world.ts";

const table = tableNamed("fills");
const line = smallWorld(2).get("fills")![1]!.line;
const row = JSON.parse(line) as Record<string, string>;

describe("a stored line read without the conversion's means", () => {
  it("is the canonical line whatever the blanks, the order of keys, escapes, zeros and unknown fields", () => {
    const reversed = Object.fromEntries(Object.entries({ ...row, extra: [1] }).reverse());
    for (const same of [
      line,
      JSON.stringify(row, null, 2),
      JSON.stringify(reversed),
      line.replace("symbol", "s\\u0079mbol"),
      JSON.stringify({ ...row, price: `00${row.price}000` }),
    ]) {
      expect(normalizedLine(table, same)).toBe(line);
    }
  });

  it.each([
    ["a missing field", { ...row, fee: undefined }],
    ["a number where a string belongs", { ...row, price: 1.5 }],
    ["an integer with a fraction", { ...row, seq: "1.5" }],
    ["an exponent in a decimal", { ...row, price: "1e5" }],
    ["a null", { ...row, symbol: null }],
    ["a list", []],
    ["null", null],
  ])("is no row with %s", (_, value) => {
    expect(normalizedLine(table, JSON.stringify(value))).toBeNull();
  });

  it("is no row when it is no JSON", () => {
    expect(normalizedLine(table, line.slice(0, -1))).toBeNull();
  });

  it("has decimals without zeros at their ends, of the same value", () => {
    expect(["", "-0", "0.00", "-12.30", "100", "007", "1.", ".5", "1e5"].map(canonicalDecimal)).toEqual([
      ...["", "0", "0", "-12.3", "100", "7"],
      ...[null, null, null],
    ]);
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }),
        fc.nat(3),
        fc.nat(3),
        (value, zeros, lead) => {
          const digits = (value < 0n ? -value : value).toString().padStart(10, "0");
          const sign = value < 0n ? "-" : "";
          const plain = `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`;
          const padded = `${sign}${"0".repeat(lead)}${digits.slice(0, -9)}.${digits.slice(-9)}${"0".repeat(zeros)}`;
          const canonical = canonicalDecimal(padded)!;
          expect(canonicalDecimal(plain)).toBe(canonical);
          expect(canonical).toMatch(/^(?:0|-?(?:[1-9]\d*|0(?=\.))(?:\.\d*[1-9])?)$/);
          const [whole = "", fraction = ""] = canonical.replace("-", "").split(".");
          expect(BigInt(whole + fraction.padEnd(9, "0"))).toBe(value < 0n ? -value : value);
        },
      ),
    );
  });
});
