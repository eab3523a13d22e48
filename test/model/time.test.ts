import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { floorDivide, formatTime, int64Max, int64Min, parseTime } from "../../src/model/time.ts";

const instant = fc.bigInt({ min: int64Min, max: int64Max });

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof RunvaultError) return error.code;
    throw error;
  }
  return "no error";
}

describe("times", () => {
  test("what formatTime prints, parseTime reads back to the nanosecond, over the whole int64 range", () => {
    fc.assert(
      fc.property(instant, (ns) => {
        expect(parseTime(formatTime(ns))).toBe(ns);
        expect(parseTime(String(ns))).toBe(ns);
      }),
    );
    for (const ns of [int64Min, int64Max, -1n, 0n, 1n, 999_999_999n, -1_000_000_001n]) {
      expect(parseTime(formatTime(ns))).toBe(ns);
    }
  });

  test("printed times have nine decimals and sort as the instants do", () => {
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        expect(formatTime(a)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
        expect(formatTime(a) < formatTime(b)).toBe(a < b);
      }),
    );
  });

  test("an offset moves the instant and nothing else", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 4_000_000_000_000_000_000n }),
        fc.integer({ min: -23 * 60, max: 23 * 60 }),
        (ns, minutes) => {
          const hours = String(Math.floor(Math.abs(minutes) / 60)).padStart(2, "0");
          const rest = String(Math.abs(minutes) % 60).padStart(2, "0");
          const text = formatTime(ns).replace("Z", `${minutes < 0 ? "-" : "+"}${hours}:${rest}`);
          expect(parseTime(text)).toBe(ns - BigInt(minutes) * 60_000_000_000n);
        },
      ),
    );
  });

  test.each([
    ["2022-01-01", 1_640_995_200_000_000_000n],
    ["2022-01-01T00:01:00Z", 1_640_995_260_000_000_000n],
    ["2022-01-01 00:01:00", 1_640_995_260_000_000_000n],
    ["2022-01-01t00:01:00z", 1_640_995_260_000_000_000n],
    ["2022-01-01T00:01:00.5Z", 1_640_995_260_500_000_000n],
    ["2022-01-01T00:01:00.000000001Z", 1_640_995_260_000_000_001n],
    ["1969-12-31T23:59:59.999999999Z", -1n],
    ["2024-02-29T00:00:00Z", 1_709_164_800_000_000_000n],
  ])("%s is read exactly", (text, ns) => {
    expect(parseTime(text)).toBe(ns);
  });

  test.each([
    "",
    " ",
    "now",
    "1.5",
    "1e18",
    "0x10",
    "+1",
    "2022-02-30T00:00:00Z",
    "2023-02-29",
    "2022-13-01",
    "2022-01-01T24:00:00Z",
    "2022-01-01T00:00:60Z",
    "2022-01-01T00:00:00.1234567891Z",
    "2022-01-01T00:00:00+25:00",
    "2022-01-01T00:00",
    "9223372036854775808",
    "-9223372036854775809",
    "1600-01-01T00:00:00Z",
    "2300-01-01",
  ])("%j is no time", (text) => {
    expect(codeOf(() => parseTime(text))).toBe("invalid_argument");
  });

  test("floorDivide rounds down: quotient times divisor plus a remainder of the divisor's sign is the dividend", () => {
    const divisor = fc.bigInt({ min: -10_000n, max: 10_000n }).filter((b) => b !== 0n);
    fc.assert(
      fc.property(instant, divisor, (a, b) => {
        const remainder = a - floorDivide(a, b) * b;
        expect(b > 0n ? remainder >= 0n && remainder < b : remainder <= 0n && remainder > b).toBe(true);
      }),
    );
  });
});
