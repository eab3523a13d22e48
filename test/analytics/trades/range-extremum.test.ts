import fc from "fast-check";
import { expect, test } from "vitest";
import { RangeExtremum } from "../../../src/analytics/trades/range-extremum.ts";

test("the extreme of any stretch is the one that looking at all of it finds", () => {
  const values = fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), {
    minLength: 1,
    maxLength: 300,
  });
  fc.assert(
    fc.property(values, fc.nat(), fc.nat(), (column, a, b) => {
      const from = a % column.length;
      const to = from + 1 + (b % (column.length - from));
      const stretch = column.slice(from, to).sort((x, y) => (x < y ? -1 : x > y ? 1 : 0));
      const kept = BigInt64Array.from(column);
      expect(new RangeExtremum(kept, "smallest").over(from, to)).toBe(stretch[0]);
      expect(new RangeExtremum(kept, "largest").over(from, to)).toBe(stretch.at(-1));
    }),
    { numRuns: 500 },
  );
});
