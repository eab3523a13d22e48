import { z } from "zod";
import { RunvaultError } from "../error.ts";
import { longestTimerMs } from "./deadline.ts";

/** Facts about a failed attempt that will be repeated. */
export interface RetryInfo {
  /** Consecutive failed attempts without progress, including this one. */
  readonly attempt: number;
  /** The wait before the next attempt. */
  readonly delayMs: number;
  readonly error: RunvaultError;
}

/** How failed requests are retried. Made once at the start of a job, and passed to everything that sends requests. */
export interface RetryPolicy {
  /** Attempts after the first, consecutive and without progress. */
  readonly retries: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  readonly retryAfterMaxMs: number;
  readonly random: () => number;
  readonly onRetry: (info: RetryInfo) => void;
}

/** A policy in part; everything has a default. */
export interface RetryOptions {
  /** Attempts after the first. Default 5: with the backoff below about ten seconds, enough for a restart. */
  readonly retries?: number | undefined;
  /** Upper bound of the first random delay, doubled by every failure. Default 250. */
  readonly backoffBaseMs?: number | undefined;
  /** Upper bound of any random delay. Default 10,000: nobody waits longer after a gateway is back. */
  readonly backoffMaxMs?: number | undefined;
  /** Longest Retry-After that is obeyed. Default 120,000: beyond it, one more try and a clear error are better. */
  readonly retryAfterMaxMs?: number | undefined;
  /** Random numbers in [0, 1) for the backoff. Default Math.random. */
  readonly random?: (() => number) | undefined;
  /** Called before the wait for a repeated attempt. Default: nothing. */
  readonly onRetry?: ((info: RetryInfo) => void) | undefined;
}

const ms = z.int().min(1).max(longestTimerMs);
const fn = <T>() => z.custom<T>((value) => typeof value === "function", "must be a function");

const schema = z.strictObject({
  retries: z.int().min(0).max(1000).default(5),
  backoffBaseMs: ms.default(250),
  backoffMaxMs: ms.default(10_000),
  retryAfterMaxMs: ms.default(120_000),
  random: fn<RetryPolicy["random"]>().default(() => Math.random),
  onRetry: fn<RetryPolicy["onRetry"]>().default(() => () => {}),
});

/** Makes a policy. Throws `invalid_argument` with the invalid option. */
export function retryPolicy(options: RetryOptions = {}): RetryPolicy {
  const checked = schema.safeParse(options);
  if (checked.success) return checked.data;
  const problems = checked.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new RunvaultError("invalid_argument", `retry options: ${problems.join("; ")}`);
}

/** The same policy with another listener for retries. */
export function alsoTelling(policy: RetryPolicy, onRetry: RetryPolicy["onRetry"]): RetryPolicy {
  return {
    ...policy,
    onRetry: (info) => {
      onRetry(info);
      policy.onRetry(info);
    },
  };
}

/**
 * The wait before the next attempt: full jitter, uniform in [0, min(max, base × 2^(failures − 1))), and at least what
 * the gateway asked for, up to the cap. `failures` counts from 1.
 */
export function backoffMs(
  failures: number,
  retryAfterMs: number | undefined,
  policy: Pick<RetryPolicy, "backoffBaseMs" | "backoffMaxMs" | "retryAfterMaxMs" | "random">,
): number {
  const ceiling = Math.min(policy.backoffMaxMs, policy.backoffBaseMs * 2 ** Math.min(failures - 1, 30));
  const jittered = Math.floor(policy.random() * ceiling);
  return Math.max(jittered, Math.min(retryAfterMs ?? 0, policy.retryAfterMaxMs));
}
