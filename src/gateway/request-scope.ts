import { RunvaultError } from "../model/error.ts";

/** The life of one call: its signal is aborted, always with a RunvaultError, by the caller's signal or by the source's close. */
export interface RequestScope extends Disposable {
  readonly signal: AbortSignal;
}

/** Opens a scope; disposing it takes its listeners off the outer signals, which live longer. */
export function openRequestScope(outer: readonly (AbortSignal | undefined)[]): RequestScope {
  const controller = new AbortController();
  const ending = new AbortController();
  for (const signal of outer) {
    if (signal === undefined) continue;
    const onAbort = () => controller.abort(asInterrupted(signal.reason));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true, signal: ending.signal });
  }
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => ending.abort(),
  };
}

function asInterrupted(reason: unknown): RunvaultError {
  if (reason instanceof RunvaultError) return reason;
  return new RunvaultError("interrupted", "the request was given up", { cause: reason });
}
