import { describe, expect, test } from "vitest";
import { instant } from "../../src/cli/options/instant.ts";

describe("a time on the command line", () => {
  test.each([
    ["2022-01-01", 1_640_995_200_000_000_000n],
    ["2022-01-01T00:00:00.000000001Z", 1_640_995_200_000_000_001n],
    ["2022-01-01T01:00:00+01:00", 1_640_995_200_000_000_000n],
    ["1640995200000000001", 1_640_995_200_000_000_001n],
    ["1000000000000000", 1_000_000_000_000_000n],
    ["-1000000000000000", -1_000_000_000_000_000n],
    ["0", 0n],
    ["5ns", 5n],
    ["-5ns", -5n],
    ["1640995200000000us", 1_640_995_200_000_000_000n],
    ["1640995200000ms", 1_640_995_200_000_000_000n],
    ["1640995200s", 1_640_995_200_000_000_000n],
  ])("%s is read to the nanosecond", (text, ns) => {
    expect(instant.parse(text)).toBe(ns);
  });

  test.each([
    [
      "1641038400",
      "1970-01-01T00:00:01.6410384Z in nanoseconds, or 2022-01-01T12:00:00Z in seconds; write 1641038400ns, 1641038400s or an RFC 3339 time",
    ],
    ["1641038400000", "or 2022-01-01T12:00:00Z in milliseconds; write 1641038400000ns, 1641038400000ms or"],
    ["999999999999999", "or 2001-09-09T01:46:39.999999Z in microseconds; write 999999999999999ns, "],
    ["5", "5 is 1970-01-01T00:00:00.000000005Z in nanoseconds, or 1970-01-01T00:00:05Z in seconds"],
    ["-5", "or 1969-12-31T23:59:55Z in seconds"],
  ])("%s is ambiguous, and is refused with both readings", (text, readings) => {
    const { error } = instant.safeParse(text);
    expect(error?.issues[0]?.message).toContain(`is ambiguous: ${text} is `);
    expect(error?.issues[0]?.message).toContain(readings);
  });

  test.each(["yesterday", "", "5 s", "5h", "1.5s", "2022-02-30", "12:00"])("%j is none", (text) => {
    expect(instant.safeParse(text).error?.issues[0]?.message).toContain("must be a time: RFC 3339 such as");
  });

  test("beyond 64 bits is told as such", () => {
    expect(instant.safeParse("9223372037s").error?.issues[0]?.message).toContain("outside the range");
    expect(instant.parse("9223372036s")).toBe(9_223_372_036_000_000_000n);
  });
});
