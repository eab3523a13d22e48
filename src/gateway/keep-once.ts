/**
 * Makes a value when it is first needed and keeps it. A failure is not kept, so the next caller tries again;
 * simultaneous callers share one attempt. Throws the signal's reason if that comes first; the attempt continues for the
 * others.
 */
export function keepOnce<T>(make: () => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let kept: Promise<T> | undefined;
  return async (signal) => {
    signal.throwIfAborted();
    if (kept === undefined) {
      const attempt = make();
      kept = attempt;
      attempt.catch(() => {
        kept = undefined;
      });
    }
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([kept, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  };
}
