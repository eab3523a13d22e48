import { expect, test } from "vitest";
import { figureText } from "../../../src/analytics/render/figure-text.ts";
import { shortDecimal } from "../../../src/model/text/number-text.ts";
import { acrossWeekends } from "../../../src/report/charts/drawing/across-weekends.ts";
import { durationText } from "../../../src/report/charts/drawing/number-text.ts";
import { valueAxis } from "../../../src/report/charts/drawing/value-axis.ts";

const figure = (value: number | string, unit = "USD") => ({
  value,
  unit,
  convention: "",
  n: 1,
  from: "",
  to: "",
});

// latencies of backtests are a few nanoseconds, which were "0 ms"
test.each([
  [0, "0 ms"],
  [0.000234, "234 ns"],
  [0.0099, "9900 ns"],
  [0.01, "0.01 ms"],
  [12.4, "12 ms"],
  [200_000, "3 min 20 s"],
])("%d ms are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test("a figure of less than a hundredth of a millisecond is in nanoseconds", () => {
  expect(figureText("max", figure(2.34e-7, "s"))).toBe("234 ns");
  expect(figureText("max", figure(0.000234, "s"))).toBe("0.234 ms");
});

// prices and quantities of eighteen decimals make products of thirty-six
test.each([
  ["0.000000000012345678901234567890123456", "1.23456789012e-11"],
  ["-0.000000000000000000000000000000000001", "-1e-36"],
  ["1234.567890123456789012345678901234567890", "1234.56789012"],
  ["12345678901234567890.123456789012345678", "12345678901234567890"],
  ["0.000000000001", "0.000000000001"],
  ["BTC-1.0000000000000000", "BTC-1.0000000000000000"],
])("%s is read as %s", (text, short) => {
  expect(shortDecimal(text)).toBe(short);
});

test("money has at most two decimals, or twelve digits below a cent", () => {
  expect(figureText("fees", figure("0.000000000012345678901234567890123456"))).toBe("1.23456789012e-11");
  expect(figureText("fees", figure("0.000234"))).toBe("0.000234");
  expect(figureText("fees", figure("12345678901234567890.123456789012345678"))).toBe(
    "12,345,678,901,234,567,890.12",
  );
});

// bars of fees of zero lay in the middle of an axis from −1 to 1
test("an axis of zeros has nothing below zero", () => {
  const { domain, values } = valueAxis([0, 0], { ticks: 4, fontSize: 12 });
  expect(domain).toEqual([0, 1]);
  expect(values[0]).toBe(0);
});

// a rolling Sharpe ratio of bars had a gap each weekend, as no return of its window differs from another
test("a line crosses a weekend without values, and no longer stretch", () => {
  const hours = (values: readonly [number, number][]) =>
    acrossWeekends(
      Float64Array.from(values, ([hour]) => hour * 3_600_000),
      Float64Array.from(values, ([, value]) => value),
    );
  const gap = Number.NaN;
  const weekend = hours([
    [0, 1],
    [24, gap],
    [48, gap],
    [72, 2],
  ]);
  expect([...weekend.values]).toEqual([1, 2]);
  expect([...weekend.times]).toEqual([0, 72 * 3_600_000]);
  const month = hours([
    [0, 1],
    [24, gap],
    [720, 2],
  ]);
  expect([...month.values]).toEqual([1, gap, 2]);
});
