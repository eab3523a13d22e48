import { expect, test } from "vitest";
import { type ErrorDetails, RunvaultError } from "../../src/model/error.ts";
import { withRetries } from "../../src/model/retry/retry.ts";
import {
  alsoTelling,
  type RetryInfo,
  type RetryOptions,
  retryPolicy,
} from "../../src/model/retry/retry-policy.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const never = new AbortController().signal;
const day = 86_400_000;
const cut = (details?: ErrorDetails) => new RunvaultError("stream_cut", "cut", details);

/** Attempts that throw these errors, one after another, and then give "whole". */
function failing(...errors: readonly Error[]): (number: number) => Promise<string> {
  return async (number) => {
    const error = errors[number - 1];
    if (error !== undefined) throw error;
    return "whole";
  };
}

test("what may help is asked again as often as the policy says, and then the last attempt's error is thrown", async () => {
  const told: RetryInfo[] = [];
  const policy = quickRetry({ retries: 2, onRetry: (info) => told.push(info) });
  const errors = [cut(), new RunvaultError("timeout", "late"), new RunvaultError("rate_limited", "last")];
  await expect(withRetries(failing(...errors), policy, never)).rejects.toBe(errors[2]);
  expect(told.map(({ attempt, error }) => [attempt, error])).toEqual([
    [1, errors[0]],
    [2, errors[1]],
  ]);
  expect(await withRetries(failing(...errors.slice(1)), policy, never)).toBe("whole");
});

test("what asking again does not help with is thrown at once, unless the rules say otherwise", async () => {
  const refused = new RunvaultError("refused", "no");
  const bug = new TypeError("bug");
  for (const error of [refused, bug]) {
    let asked = 0;
    const attempt = async () => {
      asked += 1;
      throw error;
    };
    await expect(withRetries(attempt, quickRetry(), never)).rejects.toBe(error);
    expect(asked).toBe(1);
  }
  const again = ({ code }: RunvaultError) => code === "refused";
  expect(await withRetries(failing(refused), quickRetry(), never, { again })).toBe("whole");
  await expect(withRetries(failing(cut()), quickRetry(), never, { again })).rejects.toThrow("cut");
});

test("failures are counted anew from one that brought something on, so progress is never given up", async () => {
  const told: number[] = [];
  const policy = quickRetry({ retries: 2, onRetry: ({ attempt }) => told.push(attempt) });
  const errors = Array.from({ length: 9 }, () => cut());
  // every other one brings something
  let failures = 0;
  const progressed = () => ++failures % 2 === 0;
  expect(await withRetries(failing(...errors), policy, never, { progressed })).toBe("whole");
  expect(told).toEqual([1, 1, 2, 1, 2, 1, 2, 1, 2]);
});

test("without retries, progress is no reason to ask again either", async () => {
  const policy = quickRetry({ retries: 0 });
  const asking = withRetries(failing(cut()), policy, never, { progressed: () => true });
  await expect(asking).rejects.toThrow("cut");
});

test("a Retry-After of a day is capped, and the wait that is told is the one that is done", async () => {
  const told: number[] = [];
  const policy = quickRetry({ retryAfterMaxMs: 30, onRetry: ({ delayMs }) => told.push(delayMs) });
  const started = performance.now();
  expect(await withRetries(failing(cut({ retryAfterMs: day })), policy, never)).toBe("whole");
  expect(told).toEqual([30]);
  const took = performance.now() - started;
  expect(took).toBeGreaterThan(28);
  expect(took).toBeLessThan(40_000);
});

test("an abort ends the wait at once, and its reason is what is thrown", async () => {
  const abort = new AbortController();
  const reason = new RunvaultError("interrupted", "stopped");
  const policy = quickRetry({ onRetry: () => setTimeout(() => abort.abort(reason), 5) });
  const asking = withRetries(failing(cut({ retryAfterMs: day })), policy, abort.signal);
  await expect(asking).rejects.toBe(reason);
});

test("an abort during an attempt outranks the attempt's own error", async () => {
  const abort = new AbortController();
  const reason = new RunvaultError("interrupted", "stopped");
  const attempt = async () => {
    abort.abort(reason);
    throw cut();
  };
  await expect(withRetries(attempt, quickRetry(), abort.signal)).rejects.toBe(reason);
});

test("a second listener is told of the same retries", async () => {
  const first: number[] = [];
  const second: number[] = [];
  const policy = quickRetry({ onRetry: ({ attempt }) => first.push(attempt) });
  const both = alsoTelling(policy, ({ attempt }) => second.push(attempt));
  await withRetries(failing(cut(), cut()), both, never);
  expect([first, second]).toEqual([
    [1, 2],
    [1, 2],
  ]);
});

test.each<[string, object]>([
  ["retries", { retries: -1 }],
  ["retries", { retries: 1.5 }],
  ["backoffBaseMs", { backoffBaseMs: 0 }],
  // a timer fires at once where it is asked to wait longer than it can
  ["retryAfterMaxMs", { retryAfterMaxMs: 2 ** 31 }],
  ["random", { random: 4 }],
  ["retrys", { retrys: 3 }],
])("a policy with a wrong %s is refused by name: %j", (name, options) => {
  let thrown: unknown;
  try {
    retryPolicy(options as RetryOptions);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ code: "invalid_argument", message: expect.stringContaining(name) });
});
