import { expect, test } from "vitest";
import { countText, plural } from "../../src/model/text/plural.ts";

test.each([
  [0, "0 rows"],
  [1, "1 row"],
  [1n, "1 row"],
  [2, "2 rows"],
  [10_000_000_000_000_001n, "10000000000000001 rows"],
] as const)("%s is told as %s", (count, text) => {
  expect(countText(count, "row")).toBe(text);
  expect(text.endsWith(` ${plural(count, "row")}`)).toBe(true);
});
