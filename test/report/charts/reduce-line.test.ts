import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { reduceLine } from "../../../src/report/charts/drawing/reduce-line.ts";

interface Line {
  readonly times: Float64Array;
  readonly values: Float64Array;
}

const lines: fc.Arbitrary<Line> = fc
  .array(
    fc.record({
      step: fc.integer({ min: 0, max: 50 }),
      value: fc.oneof(
        { weight: 8, arbitrary: fc.double({ noNaN: true }) },
        { weight: 1, arbitrary: fc.constant(NaN) },
      ),
    }),
    { maxLength: 400 },
  )
  .map((points) => {
    let time = 0;
    return {
      times: Float64Array.from(points, ({ step }) => (time += step)),
      values: Float64Array.from(points, ({ value }) => value),
    };
  });

const columnCounts = fc.integer({ min: 1, max: 40 });

/** Which points lie in each column, by another way than that of the code. */
function pointsByColumn({ times }: Line, from: number, to: number, columns: number): Map<number, number[]> {
  const inside = [...times.keys()].filter((index) => times[index]! >= from && times[index]! <= to);
  return Map.groupBy(inside, (index) =>
    to === from ? 0 : Math.min(columns - 1, Math.floor((times[index]! - from) * (columns / (to - from)))),
  );
}

describe("a line reduced to what is seen", () => {
  test("keeps each column's first, last, smallest and largest value, and nothing else but a gap", () => {
    fc.assert(
      fc.property(lines, columnCounts, (line, columns) => {
        const from = line.times[0] ?? 0;
        const to = line.times.at(-1) ?? 0;
        const kept = reduceLine(line.times, line.values, { from, to, columns });
        for (const [, points] of pointsByColumn(line, from, to, columns)) {
          const own = points.filter((index) => kept.includes(index));
          const finite = points.filter((index) => !Number.isNaN(line.values[index]!));
          expect(own.length).toBeLessThanOrEqual(5);
          expect(own.some((index) => Number.isNaN(line.values[index]!))).toBe(finite.length < points.length);
          if (finite.length === 0) continue;
          const values = (some: number[]) =>
            some.map((index) => line.values[index]!).filter((value) => !Number.isNaN(value));
          expect(own).toContain(finite[0]);
          expect(own).toContain(finite.at(-1));
          expect(Math.min(...values(own))).toBe(Math.min(...values(points)));
          expect(Math.max(...values(own))).toBe(Math.max(...values(points)));
        }
      }),
    );
  });

  test("keeps them in their order, each once, and only from the stretch asked for", () => {
    fc.assert(
      fc.property(
        lines,
        columnCounts,
        fc.integer({ min: -10, max: 4000 }),
        fc.nat(4000),
        (line, columns, from, length) => {
          const kept = reduceLine(line.times, line.values, { from, to: from + length, columns });
          for (let place = 0; place < kept.length; place++) {
            if (place > 0) expect(kept[place]!).toBeGreaterThan(kept[place - 1]!);
            expect(line.times[kept[place]!]!).toBeGreaterThanOrEqual(from);
            expect(line.times[kept[place]!]!).toBeLessThanOrEqual(from + length);
          }
        },
      ),
    );
  });

  test("keeps every point of a line that has fewer than there are columns", () => {
    const times = Float64Array.from([0, 10, 20, 30]);
    expect([...reduceLine(times, times, { from: 0, to: 30, columns: 900 })]).toEqual([0, 1, 2, 3]);
  });

  test("keeps the four of all points that share one instant", () => {
    const times = new Float64Array(6).fill(7);
    const values = Float64Array.from([3, 9, 4, -2, 5, 6]);
    expect([...reduceLine(times, values, { from: 7, to: 7, columns: 900 })]).toEqual([0, 1, 3, 5]);
  });

  test("reads ten million points in well under a second", () => {
    const points = 10_000_000;
    const times = new Float64Array(points);
    const values = new Float64Array(points);
    for (let index = 0; index < points; index++) {
      times[index] = index * 1000;
      values[index] = Math.sin(index / 1e5);
    }
    const began = process.cpuUsage();
    const kept = reduceLine(times, values, { from: 0, to: times[points - 1]!, columns: 900 });
    const cpu = process.cpuUsage(began);
    expect(kept.length).toBeLessThanOrEqual(3600);
    // about a tenth of a second; ten times that is for a machine with other work
    expect((cpu.user + cpu.system) / 1e6).toBeLessThan(2);
  });
});
