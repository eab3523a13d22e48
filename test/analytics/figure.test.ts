import { expect, test } from "vitest";
import { figure, figureSchema, noFigure } from "../../src/analytics/figure.ts";

const basis = { unit: "ratio", convention: "ddof 1", n: 3, from: 0n, to: 1_000_000_001n };

test("a figure says what it is of, with its instants in full", () => {
  expect(figure(1.5, basis)).toEqual({
    value: 1.5,
    unit: "ratio",
    convention: "ddof 1",
    n: 3,
    from: "1970-01-01T00:00:00.000000000Z",
    to: "1970-01-01T00:00:01.000000001Z",
  });
});

test("what is no number is null with a reason, and minus zero is zero", () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    expect(figure(value, basis, "no losing trade")).toEqual(noFigure("no losing trade"));
  }
  expect(Object.is((figure(-0, basis) as { value: number }).value, 0)).toBe(true);
});

test("money is exact text, and the schema takes nothing that is half a figure", () => {
  expect(figureSchema.parse(figure("-0.000000001", basis)).value).toBe("-0.000000001");
  expect(figureSchema.parse(noFigure("no fills"))).toEqual({ value: null, reason: "no fills" });
  for (const wrong of [{ value: null }, { value: 1 }, { ...figure(1, basis), value: "1.50" }]) {
    expect(figureSchema.safeParse(wrong).success, JSON.stringify(wrong)).toBe(false);
  }
});
