import { RunvaultError } from "../../model/error.ts";
import { withRetries } from "../../model/retry/retry.ts";
import { retryPolicy } from "../../model/retry/retry-policy.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { visible } from "../../model/text/visible-text.ts";
import { isoOf, type Nanoseconds } from "../../model/time.ts";
import type { ToldLine } from "../record/job-record.ts";

/** A log for failures, such as pino's. */
export interface TellLog {
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
}

/** Time limits of notifications, in milliseconds. */
export interface TellTimes {
  /** One attempt, a command included. Default 10,000. */
  readonly attemptMs: number;
  /** Upper bound of the first random pause between attempts, half that of the second. Default 2,000. */
  readonly pauseMs: number;
  /** All simultaneous notifications with all their attempts. Default 60,000. */
  readonly wholeMs: number;
}

export const usualTimes: TellTimes = { attemptMs: 10_000, pauseMs: 2_000, wholeMs: 60_000 };

/** Attempts per notification. */
const attempts = 3;

/** What sending needs besides the message. */
export interface TellContext {
  readonly times: TellTimes;
  readonly scrubber: Scrubber;
  readonly log: TellLog;
  readonly clock: () => Nanoseconds;
  /** Ends everything. */
  readonly signal: AbortSignal;
}

/** A notifier with something to send. */
export interface Notifier {
  readonly to: ToldLine["to"];
  /** What was not done in time, and a hint. */
  readonly slow: { readonly what: string; readonly hint: string };
  /** One attempt, which `signal` ends. Throws a RunvaultError without the address; its code says whether to retry. */
  attempt(signal: AbortSignal): Promise<void>;
}

/** Sends one notification, in up to three attempts. Never throws: a failure is in the line and in the log. */
export async function tellOne(
  notifier: Notifier,
  { times, scrubber, log, clock, signal }: TellContext,
): Promise<ToldLine> {
  const { to } = notifier;
  let tried = 0;
  try {
    const policy = retryPolicy({
      retries: attempts - 1,
      backoffBaseMs: times.pauseMs,
      backoffMaxMs: 2 * times.pauseMs,
      retryAfterMaxMs: 2 * times.pauseMs,
      // never a short pause: a recipient that was down a moment ago is still down
      random: () => 0.5 + Math.random() / 2,
    });
    await withRetries(
      async (number) => {
        tried = number;
        await withinTime(notifier, times.attemptMs, signal);
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
      // a failed notification does not fail the job
      exit: 0,
    };
    log.warn({ to, attempts: tried, code, why: error.message }, "could not be notified");
    return { kind: "told", at: isoOf(clock()), to, result: "failed", attempts: tried, error };
  }
}

/** One attempt with a time limit. An attempt that ignores its signal is abandoned. */
async function withinTime(notifier: Notifier, attemptMs: number, signal: AbortSignal): Promise<void> {
  const { what, hint } = notifier.slow;
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
    await Promise.race([notifier.attempt(controller.signal), ended]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

/** The lifetime of simultaneous notifications: ends after `wholeMs`, and with `signal`. */
export function wholeTime({ wholeMs }: TellTimes, signal: AbortSignal | undefined): TellingTime {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(
      new RunvaultError("timeout", `notifications took longer than ${wholeMs / 1000} s in all`),
    );
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
