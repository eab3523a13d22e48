import { expect, test } from "vitest";
import { naturalOrder } from "../../src/model/text/natural-order.ts";

test("digits are compared as numbers, of any length, and the rest by its characters", () => {
  const ordered = [
    "",
    "9",
    "10",
    "T1",
    "T9",
    "T09",
    "T10",
    "T10a",
    "T10b2",
    "T10b10",
    "T99999999999999999999",
    "t1",
  ];
  const shuffled = [...ordered].sort((a, b) => a.length - b.length || (a < b ? 1 : -1));
  expect(shuffled.sort(naturalOrder)).toEqual(["", "9", "10", "T1", "T09", "T9", ...ordered.slice(6)]);
});
