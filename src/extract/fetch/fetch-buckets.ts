import type { Slice } from "./slice.ts";
import type { SliceQueue } from "./slice-queue.ts";

export interface BucketWork {
  /** In order, with those of one bucket together; each is taken when the queue begins it. */
  readonly slices: Iterable<Slice>;
  /** Shared by the tables of a run, or of many; `priority` decides whose slices come first. */
  readonly queue: SliceQueue;
  readonly priority: number;
  readonly signal: AbortSignal;
  readonly fetch: (slice: Slice, signal: AbortSignal) => Promise<void>;
  /** Called once for each bucket, when all its slices are here. */
  readonly convert: (bucket: string) => Promise<void>;
  /** Called once all slices are here, or have failed. */
  readonly onFetched?: () => void;
}

/** A bucket whose slices are being fetched. */
interface BucketUnderWay {
  readonly bucket: string;
  /** Slices that are not here yet. */
  left: number;
  /** Promises that settle with the slices and never reject. */
  readonly fetching: Promise<void>[];
}

/**
 * Fetches slices, several at a time, and converts each bucket while others are being fetched. Once everything has
 * ended, throws the first failure, or the signal's reason if that kept a slice from being fetched.
 */
export async function fetchBuckets(work: BucketWork): Promise<void> {
  const { queue, priority, fetch, convert } = work;
  const halt = new AbortController();
  const signal = AbortSignal.any([work.signal, halt.signal]);
  const failures: unknown[] = [];
  /** Runs an action in parallel with the others; the first failure stops them all. */
  const aside = async (action: () => Promise<void>) => {
    try {
      await action();
    } catch (error) {
      failures.push(error);
      halt.abort("another part of the table failed");
    }
  };
  const converting: Promise<void>[] = [];
  const convertOnceFetched = (done: BucketUnderWay | undefined) => {
    if (done === undefined) return;
    const whole = async () => {
      await Promise.all(done.fetching);
      if (done.left === 0) await convert(done.bucket);
    };
    converting.push(aside(whole));
  };
  const fetching: Promise<void>[] = [];
  const waiting: Promise<void>[] = [];
  let open: BucketUnderWay | undefined;
  let isLeft = false;
  for (const slice of work.slices) {
    if (waiting.length >= queue.concurrency) await waiting.shift();
    if (signal.aborted) {
      // its other slices will not be fetched
      open = undefined;
      isLeft = true;
      break;
    }
    if (slice.bucket !== open?.bucket) {
      convertOnceFetched(open);
      open = { bucket: slice.bucket, left: 0, fetching: [] };
    }
    const bucket = open;
    bucket.left++;
    const begun = Promise.withResolvers<void>();
    waiting.push(begun.promise);
    const turn = async () => {
      begun.resolve();
      if (signal.aborted) {
        isLeft = true;
        return;
      }
      await fetch(slice, signal);
      bucket.left--;
    };
    const fetched = aside(() => queue.add(turn, { priority }));
    bucket.fetching.push(fetched);
    fetching.push(fetched);
  }
  convertOnceFetched(open);
  await Promise.all(fetching);
  work.onFetched?.();
  await Promise.all(converting);
  if (failures.length > 0) throw failures[0];
  // after the last row there is nothing left to stop
  if (isLeft) work.signal.throwIfAborted();
}
