/**
 * A value that is made when it is first asked for and then kept; a failure is not kept, so that whoever asks next tries
 * again. Those who ask meanwhile wait for the same attempt. Throws the signal's reason where that comes first: the
 * attempt goes on for the others.
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
