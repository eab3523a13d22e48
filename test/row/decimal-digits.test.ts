import fc from "fast-check";
import { expect, test } from "vitest";
import { writeShortDouble } from "../../src/row/wire/decimal-digits.ts";

const out = Buffer.alloc(64);
const view = new DataView(out.buffer, out.byteOffset, out.byteLength);

/** What is written of a double, from a byte on that is none of its own; undefined where it is left to others. */
function written(value: number): string | undefined {
  const end = writeShortDouble(view, 3, value);
  return end < 0 ? undefined : out.toString("latin1", 3, end);
}

/** Decimals of few digits, and the doubles beside them, at which their shortest text changes. */
const near = fc
  .tuple(
    fc.bigInt({ min: -(10n ** 16n), max: 10n ** 16n }),
    fc.integer({ min: 0, max: 12 }),
    fc.integer({ min: -2, max: 2 }),
  )
  .map(([digits, places, steps]) => {
    const double = new Float64Array([Number(`${digits}e-${places}`)]);
    const bits = new BigInt64Array(double.buffer);
    bits[0]! += BigInt(steps);
    return double[0]!;
  });

test("a double of few digits is written as ECMAScript prints it, and any other one not at all", () => {
  fc.assert(
    fc.property(fc.oneof(near, fc.double()), (value) => {
      const text = written(value);
      return text === undefined || text === String(value);
    }),
    { numRuns: 20_000 },
  );
  const left = [-0, 1e-7, -9.9e-7, 1e15, 0.1 + 0.2, 123_456_789.123456, Number.NaN, Infinity, -Infinity];
  expect(left.map(written)).toEqual(left.map(() => undefined));
});

test("prices and quantities are written", () => {
  const usual = [0, 1, -1, 0.008, 29_998.66, -0.02399893, 1e-6, 0.000_001_25, 9_999_999.99999999, 100_000];
  expect(usual.map(written)).toEqual(usual.map(String));
});
