import { RunvaultError } from "../../model/error.ts";
import { withRetries } from "../../model/retry/retry.ts";
import { retryPolicy } from "../../model/retry/retry-policy.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { visible } from "../../model/text/visible-text.ts";
import { isoOf, type Nanoseconds } from "../../model/time.ts";
import type { ToldLine } from "../record/job-record.ts";

/** Where tellers write what went wrong: a log of pino is one. */
export interface TellLog {
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
}

/** How long telling may take, in milliseconds. */
export interface TellTimes {
  /** One attempt, a command included. Default 10,000. */
  readonly attemptMs: number;
  /** Upper bound of the first random pause between attempts, twice that of the second. Default 2,000. */
  readonly pauseMs: number;
  /** All that is told at one time, whatever its attempts. Default 60,000. */
  readonly wholeMs: number;
}

export const usualTimes: TellTimes = { attemptMs: 10_000, pauseMs: 2_000, wholeMs: 60_000 };

/** Attempts to tell one of those who are to be told. */
const attempts = 3;

/** What telling needs beside what is told. */
export interface TellContext {
  readonly times: TellTimes;
  readonly scrubber: Scrubber;
  readonly log: TellLog;
  readonly clock: () => Nanoseconds;
  /** Ends all of it. */
  readonly signal: AbortSignal;
}

/** One of those who are to be told. */
export interface Teller {
  readonly to: ToldLine["to"];
  /** What was not done in time, and what to do about it. */
  readonly slow: { readonly what: string; readonly hint: string };
  /** One attempt, which `signal` ends. Throws a RunvaultError without the address; its code says whether to try again. */
  attempt(signal: AbortSignal): Promise<void>;
}

/**
 * Tells one of those who are to be told, in three attempts. Never throws: that nobody heard is in the line, and in the log.
 */
export async function tellOne(
  teller: Teller,
  { times, scrubber, log, clock, signal }: TellContext,
): Promise<ToldLine> {
  const { to } = teller;
  let tried = 0;
  try {
    const policy = retryPolicy({
      retries: attempts - 1,
      backoffBaseMs: times.pauseMs,
      backoffMaxMs: 2 * times.pauseMs,
      retryAfterMaxMs: 2 * times.pauseMs,
      // no pause is short: who was down a moment ago is down now
      random: () => 0.5 + Math.random() / 2,
    });
    await withRetries(
      async (number) => {
        tried = number;
        await withinTime(teller, times.attemptMs, signal);
      },
      policy,
      signal,
    );
    return { kind: "told", at: isoOf(clock()), to, result: "done", attempts: tried, error: null };
  } catch (thrown) {
    const { code, message, hint } = RunvaultError.from(thrown);
    const clean = (text: string) => visible(scrubber.scrub(text));
    const error = {
      ...{ code, message: clean(message), hint: hint === undefined ? null : clean(hint) },
      // whoever cannot be told does not make a job fail
      exit: 0,
    };
    log.warn({ to, attempts: tried, code, why: error.message }, "could not be told");
    return { kind: "told", at: isoOf(clock()), to, result: "failed", attempts: tried, error };
  }
}

/** One attempt with an end. An attempt that does not heed its signal is left alone, so that nobody waits for it. */
async function withinTime(teller: Teller, attemptMs: number, signal: AbortSignal): Promise<void> {
  const { what, hint } = teller.slow;
  signal.throwIfAborted();
  const controller = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  ended.catch(() => {});
  const end = (reason: unknown) => {
    controller.abort(reason);
    reject(reason);
  };
  const timer = setTimeout(
    () => end(new RunvaultError("timeout", `${what} within ${attemptMs / 1000} s`, { hint })),
    attemptMs,
  );
  const onAbort = () => end(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([teller.attempt(controller.signal), ended]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

/** The life of all that is told at one time: it ends after `wholeMs`, and with `signal`. */
export function wholeTime({ wholeMs }: TellTimes, signal: AbortSignal | undefined): TellingTime {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new RunvaultError("timeout", `telling took longer than ${wholeMs / 1000} s in all`));
  }, wholeMs);
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    },
  };
}

export interface TellingTime extends Disposable {
  readonly signal: AbortSignal;
}
