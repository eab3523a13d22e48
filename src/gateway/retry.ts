import { setTimeout as sleep } from "node:timers/promises";
import pRetry from "p-retry";
import { RunvaultError } from "../model/error.ts";
import type { CheckedOptions } from "./options.ts";

/**
 * The wait before the next attempt: full jitter, uniform in [0, min(max, base × 2^(failures − 1))), and no shorter than
 * what the gateway asked for, up to the cap. `failures` counts from 1.
 */
export function backoffMs(
  failures: number,
  retryAfterMs: number | undefined,
  options: Pick<CheckedOptions, "backoffBaseMs" | "backoffMaxMs" | "retryAfterMaxMs" | "random">,
): number {
  const ceiling = Math.min(options.backoffMaxMs, options.backoffBaseMs * 2 ** Math.min(failures - 1, 30));
  const jittered = Math.floor(options.random() * ceiling);
  return Math.max(jittered, Math.min(retryAfterMs ?? 0, options.retryAfterMaxMs));
}

/**
 * Repeats an attempt while its error says that asking again may help, or `again` says so in its place. Throws the last
 * attempt's RunvaultError, or the reason of `signal`.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  options: CheckedOptions,
  signal: AbortSignal,
  countRetry: () => void,
  again: (error: RunvaultError) => boolean = ({ retry }) => retry === "again",
): Promise<T> {
  try {
    return await pRetry(attempt, {
      retries: options.retries,
      minTimeout: 0, // the wait is ours: full jitter and Retry-After are not among p-retry's
      signal,
      shouldRetry: ({ error }) => error instanceof RunvaultError && again(error),
      onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
        if (!(error instanceof RunvaultError) || !again(error) || retriesLeft === 0) return;
        const delayMs = backoffMs(attemptNumber, error.retryAfterMs, options);
        const { code, status, place } = error;
        options.onRetry?.({ attempt: attemptNumber, delayMs, code, status, place });
        await sleep(delayMs, undefined, { signal });
        countRetry();
      },
    });
  } catch (thrown) {
    // a wait that was cut short throws its own error; why it was cut short is the news
    throw signal.aborted ? signal.reason : RunvaultError.from(thrown);
  }
}
