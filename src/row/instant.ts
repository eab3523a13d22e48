import { type Nanoseconds, nsPerSecond } from "../model/time.ts";

/** An int64 of nanoseconds as two exact numbers: whole seconds, rounded towards zero, and the rest. */
export interface Instant {
  readonly high: number;
  readonly low: number;
}

export function instantOf(ns: Nanoseconds): Instant {
  return { high: Number(ns / nsPerSecond), low: Number(ns % nsPerSecond) };
}

export function toNanoseconds(instant: Instant): Nanoseconds {
  return BigInt(instant.high) * nsPerSecond + BigInt(instant.low);
}
