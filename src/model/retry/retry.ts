import { setTimeout as sleep } from "node:timers/promises";
import pRetry from "p-retry";
import { RunvaultError } from "../error.ts";
import { backoffMs, type RetryPolicy } from "./retry-policy.ts";

/** What to retry, if an error's code alone does not decide. */
export interface RetryRules {
  /** Whether to retry after this error. Default: if its code says that this may help. */
  readonly again?: (error: RunvaultError) => boolean;
  /** Whether the failed attempt brought anything new: then failures are counted from it on. Default: never. */
  readonly progressed?: () => boolean;
}

/**
 * Repeats an attempt, numbered from 1, by the policy; nothing else retries with a wait. Throws the last attempt's
 * error, or the reason of `signal`, which also ends a wait.
 */
export async function withRetries<T>(
  attempt: (number: number) => Promise<T>,
  policy: RetryPolicy,
  signal: AbortSignal,
  rules: RetryRules = {},
): Promise<T> {
  return await repeater(policy, signal, rules)(attempt);
}

/**
 * The same for an attempt with results in pieces, which are passed on as they come. A failure after some pieces is
 * retried like an immediate one. The attempt ends when the consumer stops.
 */
export async function* piecesWithRetries<T, R>(
  attempt: (number: number) => AsyncGenerator<T, R>,
  policy: RetryPolicy,
  signal: AbortSignal,
  rules: RetryRules = {},
): AsyncGenerator<T, R> {
  const repeat = repeater(policy, signal, rules);
  let pieces: AsyncGenerator<T, R> | undefined;
  try {
    for (;;) {
      const step = await repeat(async (number) => {
        if (pieces === undefined || number > 1) pieces = attempt(number);
        return await pieces.next();
      });
      if (step.done === true) return step.value;
      yield step.value;
    }
  } finally {
    await pieces?.return(undefined as R);
  }
}

/** Runs attempts, and counts their failures across all of them. */
function repeater(
  policy: RetryPolicy,
  signal: AbortSignal,
  { again = ({ retry }) => retry === "again", progressed = () => false }: RetryRules,
): <T>(attempt: (number: number) => Promise<T>) => Promise<T> {
  let failures = 0;
  return async (attempt) => {
    try {
      return await pRetry(attempt, {
        // counted here: p-retry can exclude progress from its count, but not restart it
        retries: Number.POSITIVE_INFINITY,
        minTimeout: 0, // the wait is ours: full jitter and Retry-After are not among p-retry's
        signal,
        shouldRetry: async ({ error }) => {
          if (!(error instanceof RunvaultError) || !again(error)) return false;
          failures = progressed() ? 1 : failures + 1;
          if (failures > policy.retries) return false;
          const delayMs = backoffMs(failures, error.retryAfterMs, policy);
          policy.onRetry({ attempt: failures, delayMs, error });
          await sleep(delayMs, undefined, { signal });
          return true;
        },
      });
    } catch (thrown) {
      // a wait that was cut short throws its own error, but the reason for that matters
      throw signal.aborted ? signal.reason : thrown;
    }
  };
}
