import PQueue from "p-queue";

/** Limits requests: how many are open at a time, and how many start per second. */
export interface RequestGate {
  /** Waits for a turn to start one attempt, which counts towards the rate. Throws the signal's reason. */
  start(signal: AbortSignal): Promise<void>;
  /** Waits for a place among the open row answers; disposing it frees the place. */
  rows(signal: AbortSignal): Promise<Disposable>;
  /** The same for documents, which never wait for rows: a reader of rows may ask for facts meanwhile. */
  document(signal: AbortSignal): Promise<Disposable>;
}

/** `concurrency` places for rows and as many for documents; without the second argument, no limit on the rate. */
export function openRequestGate(concurrency: number, maxRequestsPerSecond: number | undefined): RequestGate {
  const starts = maxRequestsPerSecond === undefined ? undefined : startQueue(maxRequestsPerSecond);
  const rowPlaces = new PQueue({ concurrency });
  const documentPlaces = new PQueue({ concurrency });
  return {
    start: async (signal) => {
      signal.throwIfAborted();
      await starts?.add(() => undefined, { signal });
    },
    rows: (signal) => takePlace(rowPlaces, signal),
    document: (signal) => takePlace(documentPlaces, signal),
  };
}

function startQueue(perSecond: number): PQueue {
  const intervalCap = Math.max(1, Math.floor(perSecond));
  return new PQueue({ intervalCap, interval: Math.ceil((intervalCap * 1000) / perSecond), strict: true });
}

function takePlace(queue: PQueue, signal: AbortSignal): Promise<Disposable> {
  const taken = Promise.withResolvers<Disposable>();
  const freed = Promise.withResolvers<void>();
  const held = queue.add(
    () => {
      taken.resolve({ [Symbol.dispose]: () => freed.resolve() });
      return freed.promise;
    },
    { signal },
  );
  // an abort while waiting rejects here; once the place is taken, its holder sees the abort in other ways
  held.catch(taken.reject);
  return taken.promise;
}
