import { expect, test } from "vitest";
import { attemptReason, attemptText } from "../../src/archive/manifest/attempt-text.ts";
import type { Attempt, AttemptOutcome, Proven } from "../../src/archive/manifest/manifest.ts";

const at = "2022-02-01T00:00:00.000Z";
const attemptOf = (outcome: AttemptOutcome, code: string): Attempt => ({
  outcome,
  at,
  behindSince: at,
  error: { code, message: "9 rows came", hint: null, at },
  notes: [],
  holding: null,
});

test.each([
  ["INCOMPLETE", "incomplete", "9 rows came"],
  ["UNVERIFIED", "unverified", "9 rows came"],
  ["UNVERIFIED", "shrunk", "shrunk: 9 rows came"],
  ["INCOMPLETE", "server_error", "server_error: 9 rows came"],
  ["INCOMPLETE", "unverified", "unverified: 9 rows came"],
] as const)("an attempt that ended %s by %s says so once: %s", (outcome, code, reason) => {
  const table = { proven: null, attempt: attemptOf(outcome, code) };
  expect(attemptReason(table)).toBe(reason);
  expect(attemptText(table)).toBe(`${outcome}: ${reason}; nothing is proven; failing since ${at}`);
});

test("what was proven before is told with the end of an OPEN table, and of no other", () => {
  const attempt = attemptOf("INCOMPLETE", "incomplete");
  const proven = (state: Proven["state"], until: string | null) =>
    ({ state, certificate: { until } }) as unknown as Proven;
  expect(attemptText({ attempt, proven: proven("OPEN", "1640995260000000000") })).toContain(
    "; proven before: OPEN up to ts_event 2022-01-01T00:01:00.000000000Z; failing since",
  );
  expect(attemptText({ attempt, proven: proven("COMPLETE", null) })).toContain(
    "; proven before: COMPLETE; failing since",
  );
});
