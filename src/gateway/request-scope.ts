import { RunvaultError } from "../model/error.ts";
import { requestCancelled } from "../model/usual-errors.ts";

/**
 * The lifetime of one call: the caller's signal or the source's close aborts its signal, always with a RunvaultError.
 */
export interface RequestScope extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * Opens a scope; disposing it removes its listeners from the outer signals, which live longer. They are removed by
 * hand, because addEventListener's `signal` option holds its signal weakly: after a garbage collection, all but one of
 * several open scopes would keep their listeners.
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
