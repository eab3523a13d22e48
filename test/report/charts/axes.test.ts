import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { textWidth } from "../../../src/report/charts/drawing/text-width.ts";
import { timeAxis } from "../../../src/report/charts/drawing/time-axis.ts";
import { logAxis, spacedAxis, valueAxis } from "../../../src/report/charts/drawing/value-axis.ts";

const fontSize = 12;
const lines = (labels: readonly (readonly string[])[]) => labels.map((label) => label.join(" | "));
const axis = (from: string, to: string, width = 900) =>
  lines(timeAxis(Date.parse(from), Date.parse(to), { width, fontSize, overhang: [50, 16] }).labels);

describe("an axis of time", () => {
  test.each([
    [
      "2021-01-01T00:00Z",
      "2024-01-01T00:00Z",
      ["Jan 2021", "Jul 2021", "Jan 2022", "Jul 2022", "Jan 2023", "Jul 2023"],
    ],
    ["2022-01-01T00:00Z", "2022-02-01T07:00Z", ["3 Jan | 2022", "10 Jan", "17 Jan", "24 Jan", "31 Jan"]],
    [
      "2021-12-27T00:00Z",
      "2022-01-10T00:00Z",
      ["27 Dec | 2021", "29 Dec", "31 Dec", "2 Jan | 2022", "4 Jan", "6 Jan", "8 Jan"],
    ],
    [
      "2022-03-03T22:30Z",
      "2022-03-04T01:30Z",
      ["22:30 | 3 Mar 2022", "23:00", "23:30", "00:00 | 4 Mar 2022", "00:30", "01:00"],
    ],
    [
      "2022-03-03T09:30Z",
      "2022-03-03T09:30:20Z",
      ["09:30:00 | 3 Mar 2022", "09:30:05", "09:30:10", "09:30:15"],
    ],
    [
      "1990-05-01T00:00Z",
      "2020-05-01T00:00Z",
      [
        "1992",
        "1994",
        "1996",
        "1998",
        "2000",
        "2002",
        "2004",
        "2006",
        "2008",
        "2010",
        "2012",
        "2014",
        "2016",
        "2018",
        "2020",
      ],
    ],
  ])("from %s to %s has labels for that", (from, to, labels) => {
    expect(axis(from, to)).toEqual(labels);
  });

  test("has fewer on a phone", () => {
    expect(axis("2021-01-01T00:00Z", "2024-01-01T00:00Z", 270)).toEqual(["2021", "2022", "2023", "2024"]);
  });

  test("has labels that neither come twice, nor touch, nor reach beyond the drawing, from milliseconds to millennia", () => {
    const instants = fc.integer({ min: -6e13, max: 6e13 });
    const lengths = fc.double({ min: 0, max: 14, noNaN: true }).map((power) => Math.floor(10 ** power) - 1);
    fc.assert(
      fc.property(instants, lengths, fc.constantFrom(270, 900), (from, length, width) => {
        const made = timeAxis(from, from + length, { width, fontSize, overhang: [50, 16] });
        expect(new Set(lines(made.labels)).size).toBe(made.labels.length);
        const [start, end] = made.domain;
        let reached = -50;
        made.values.forEach((value, index) => {
          const half = Math.max(...made.labels[index]!.map((line) => textWidth(line, fontSize))) / 2;
          const x = ((value - start) / (end - start)) * width;
          expect(x - half).toBeGreaterThanOrEqual(reached);
          reached = x + half + 4;
        });
        expect(reached).toBeLessThanOrEqual(width + 20);
        expect(made.values.length).toBeLessThanOrEqual(30);
      }),
    );
  });
});

describe("an axis of numbers", () => {
  test.each([
    [[630_000, 1_510_000], "number", ["0.6M", "0.8M", "1.0M", "1.2M", "1.4M", "1.6M"]],
    [[-0.37, 0], "percent", ["−40%", "−35%", "−30%", "−25%", "−20%", "−15%", "−10%", "−5%", "0%"]],
    [[-0.0012, 0.0017], "percent", ["−0.15%", "−0.10%", "−0.05%", "0%", "0.05%", "0.10%", "0.15%", "0.20%"]],
    [[0, 4321], "number", ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]],
    [[0, 3e-9], "number", ["0", "0.5n", "1.0n", "1.5n", "2.0n", "2.5n", "3.0n"]],
    [[0, 2e12], "number", ["0", "0.5T", "1.0T", "1.5T", "2.0T"]],
    [
      [1_000_000, 1_000_000.03],
      "number",
      [0, 5, 10, 15, 20, 25, 30].map((part) => `1,000,000.0${String(part).padStart(2, "0")}`),
    ],
    [[5, 5], "number", ["4.94", "4.96", "4.98", "5.00", "5.02", "5.04", "5.06"]],
    [[0, 0], "number", ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]],
    [[], "percent", ["0%", "20%", "40%", "60%", "80%", "100%"]],
  ] as const)("of %j in %s is labelled", (values, unit, labels) => {
    expect(valueAxis(values, { ticks: 6, fontSize, unit }).labels).toEqual(labels);
  });

  test("has no label twice, holds all values, and says nothing that is no number", () => {
    const doubles = fc.oneof(
      fc.double({ min: -1e290, max: 1e290 }),
      fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
      fc.double({ min: -1e6, max: 1e6 }),
      fc.constantFrom(1e-9, 1e12, 0, -0, 5e-324),
    );
    fc.assert(
      fc.property(fc.array(doubles), fc.constantFrom("number", "percent"), (values, unit) => {
        const made = valueAxis(values, { ticks: 5, fontSize, unit });
        expect(new Set(made.labels).size).toBe(made.labels.length);
        expect(made.labels.join()).not.toMatch(/NaN|Infinity|undefined|-/);
        const [low, high] = made.domain;
        expect(high).toBeGreaterThan(low);
        for (const value of values.filter(Number.isFinite)) {
          // but for what no pixel could show
          const nothing = (high - low) * 1e-9;
          expect(value).toBeGreaterThanOrEqual(low - nothing);
          expect(value).toBeLessThanOrEqual(high + nothing);
        }
      }),
    );
  });

  test.each([
    [
      [900, 52_000],
      ["1k", "2k", "5k", "10k", "20k", "50k"],
    ],
    [
      [11, 300_200],
      ["100", "1k", "10k", "100k"],
    ],
    [
      [0.001, 1e9],
      ["10m", "1", "100", "10k", "1M", "100M"],
    ],
    [
      [42, 42],
      ["30", "40", "50", "60", "70", "80"],
    ],
    [
      [35, 80],
      ["40", "50", "60", "70", "80"],
    ],
  ] as const)("of %j by powers of ten is labelled", (values, labels) => {
    expect(logAxis(values, { ticks: 6, fontSize }).labels).toEqual(labels);
  });

  test("beneath a plot keeps as many labels as have room, zero among them", () => {
    const wide = valueAxis([-20_000, 40_000], { ticks: 12, fontSize });
    expect(wide.labels.length).toBeGreaterThan(10);
    expect(spacedAxis(wide, 200, fontSize).labels).toEqual(["−20k", "0", "20k", "40k"]);
    expect(spacedAxis(logAxis([1, 9e5], { ticks: 9, fontSize }), 100, fontSize).labels).toEqual([
      "1",
      "100k",
    ]);
  });
});
