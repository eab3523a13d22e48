import { RunvaultError } from "../model/error.ts";
import { requestCancelled } from "../model/usual-errors.ts";

/** The life of one call: its signal is aborted, always with a RunvaultError, by the caller's signal or by the source's close. */
export interface RequestScope extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * Opens a scope; disposing it takes its listeners off the outer signals, which live longer. It does so by hand: what
 * addEventListener's `signal` option takes them off by is held weakly, and of several scopes open at a time a collection
 * leaves all but one on.
 */
export function openRequestScope(outer: readonly (AbortSignal | undefined)[]): RequestScope {
  const controller = new AbortController();
  const listening: Disposable[] = [];
  for (const signal of outer) {
    if (signal === undefined) continue;
    const onAbort = () => controller.abort(asInterrupted(signal.reason));
    if (signal.aborted) {
      onAbort();
      continue;
    }
    signal.addEventListener("abort", onAbort, { once: true });
    listening.push({ [Symbol.dispose]: () => signal.removeEventListener("abort", onAbort) });
  }
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const listener of listening) listener[Symbol.dispose]();
    },
  };
}

function asInterrupted(reason: unknown): RunvaultError {
  if (reason instanceof RunvaultError) return reason;
  return requestCancelled(reason);
}
