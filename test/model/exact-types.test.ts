import { expect, test } from "vitest";
import { digitsOf, holds, widerType } from "../../src/model/profile/exact-types.ts";

test.each([
  ["0.05234567890123456", 1, 17],
  ["-0012.5000", 2, 1],
  ["0", 1, 0],
  ["100", 3, 0],
])("%s has %i digits before the point and %i after it", (value, whole, scale) => {
  expect(digitsOf(value)).toEqual({ whole, scale });
});

// the 20 digits before the point of a type that a value with 17 decimals led to left no room for the 19 of the next
test.each([
  ["DECIMAL(18,9)", "0.05234567890123456", "DECIMAL(38,23)"],
  ["DECIMAL(18,9)", "123456789012", "DECIMAL(38,18)"],
  ["DECIMAL(18,9)", "0.0021681799239403935", "DECIMAL(38,24)"],
  // what the column has and this value does not need gives way
  ["DECIMAL(38,18)", "0.0021681799239403935", "DECIMAL(38,19)"],
  ["DECIMAL(38,29)", "1234567890.5", "DECIMAL(38,28)"],
  ["DECIMAL(18,9)", "0.1234567890123456789012345678901234567", "DECIMAL(38,37)"],
  ["DECIMAL(18,9)", "10.1234567890123456789012345678901234567", null],
])("a column of %s gets for %s %s", (type, value, wider) => {
  expect(widerType(type, digitsOf(value))).toBe(wider);
});

test("whatever a value needs, the new type has it, and what the column has where both fit in 38 digits", () => {
  for (let whole = 1; whole <= 38; whole++) {
    for (let scale = 0; whole + scale <= 38; scale++) {
      const wider = widerType("DECIMAL(18,9)", { whole, scale })!;
      expect(holds(wider, `DECIMAL(${whole + scale},${scale})`)).toBe(true);
      if (Math.max(whole, 9) + Math.max(scale, 9) <= 38) expect(holds(wider, "DECIMAL(18,9)")).toBe(true);
    }
  }
});
