import { RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { durationText } from "../../model/text/duration-text.ts";

export interface StopClockOptions {
  /** Time limit of the execution; null for none. */
  readonly deadlineMs: number | null;
  /** Time limit for work in progress after that, or after the caller's signal. */
  readonly graceMs: number;
  /** The caller's stop. */
  readonly signal: AbortSignal;
}

/** When an execution must end: first in an orderly way, then at once. */
export interface StopClock extends Disposable {
  /** Aborts at the deadline, or with the caller's signal: nothing new begins, and fetching stops. */
  readonly windDown: AbortSignal;
  /** Aborts `graceMs` later: everything ends. */
  readonly signal: AbortSignal;
}

/** Starts the clock of an execution. */
export function openStopClock({ deadlineMs, graceMs, signal }: StopClockOptions): StopClock {
  const windDown = new AbortController();
  const hard = new AbortController();
  const timers: NodeJS.Timeout[] = [];
  const after = (ms: number, action: () => void) => void timers.push(setTimeout(action, timerMs(ms)));
  const stop = (reason: unknown) => {
    if (windDown.signal.aborted) return;
    windDown.abort(reason);
    after(graceMs, () => hard.abort(reason));
  };
  const onSignal = () => stop(signal.reason);
  if (signal.aborted) onSignal();
  else signal.addEventListener("abort", onSignal, { once: true });
  if (deadlineMs !== null) {
    const message = `the deadline was reached after ${deadlineMs < 1_000 ? `${deadlineMs} ms` : durationText(deadlineMs)}`;
    after(deadlineMs, () => stop(new RunvaultError("deadline", message)));
  }
  return {
    windDown: windDown.signal,
    signal: hard.signal,
    [Symbol.dispose]: () => {
      signal.removeEventListener("abort", onSignal);
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
