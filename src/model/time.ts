import { RunvaultError } from "./error.ts";

/** UNIX nanoseconds, UTC. */
export type Nanoseconds = bigint;

/** A half-open window `[from, to)`; a missing bound is open. */
export interface TimeBounds {
  readonly from?: Nanoseconds | undefined;
  readonly to?: Nanoseconds | undefined;
}

/** Whether a time lies within the bounds. */
export function isWithin(time: Nanoseconds, { from, to }: TimeBounds): boolean {
  return (from === undefined || time >= from) && (to === undefined || time < to);
}

export const nsPerSecond = 1_000_000_000n;
export const int64Max = 9_223_372_036_854_775_807n;
export const int64Min = -9_223_372_036_854_775_808n;

/** The range of TIMESTAMP_NS; DuckDB uses the ends of int64 for infinities and "no date". */
export const timestampMin = -9_223_372_036_854_775_806n;
export const timestampMax = 9_223_372_036_854_775_806n;

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?)?$/;

/**
 * Reads UNIX nanoseconds (`1640995260000000000`) or an RFC 3339 time (`2022-01-01T00:01:00.000000001Z`; a date alone
 * is midnight, no offset is UTC). Throws `invalid_argument` on anything else, and outside the int64 range.
 */
export function parseTime(text: string): Nanoseconds {
  let ns: Nanoseconds;
  if (/^-?\d{1,20}$/.test(text)) {
    ns = BigInt(text);
  } else {
    const match = rfc3339.exec(text);
    const millis = match === null ? Number.NaN : parseWholeSeconds(match);
    if (match === null || Number.isNaN(millis)) {
      throw new RunvaultError("invalid_argument", `not a time: ${JSON.stringify(text)}`, {
        hint: "Give UNIX nanoseconds or an RFC 3339 time such as 2022-01-01T00:00:00Z.",
      });
    }
    ns = BigInt(millis) * 1_000_000n + BigInt((match[7] ?? "").padEnd(9, "0"));
  }
  if (ns < int64Min || ns > int64Max) {
    throw new RunvaultError("invalid_argument", `time outside the range of 64-bit nanoseconds: ${text}`);
  }
  return ns;
}

function parseWholeSeconds(match: RegExpExecArray): number {
  const [, year, month, day, hour = "00", minute = "00", second = "00", , offset = "Z"] = match;
  const wall = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const local = Date.parse(`${wall}Z`);
  // Date.parse turns 2022-02-30 into a day in March; a day that does not exist is refused
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 19) !== wall) return Number.NaN;
  return Date.parse(`${wall}${offset.toUpperCase()}`);
}

/** RFC 3339 with all nine decimals, UTC: `2022-01-01T00:01:00.000000001Z`. */
export function formatTime(ns: Nanoseconds): string {
  const seconds = floorDivide(ns, nsPerSecond);
  const fraction = (ns - seconds * nsPerSecond).toString().padStart(9, "0");
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, -5)}.${fraction}Z`;
}

/** A time to the millisecond, as in manifests. */
export function isoOf(ns: Nanoseconds): string {
  return new Date(Number(ns / 1_000_000n)).toISOString();
}

/** Division that rounds towards minus infinity. */
export function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** The current time of the machine's clock. Millisecond resolution is enough wherever this is used. */
export function wallClock(): Nanoseconds {
  return BigInt(Date.now()) * 1_000_000n;
}

/** The earlier of our time and the gateway's, which limits horizons: rows may still come by the other clock. */
export function earlierOf(ours: Nanoseconds, theirs: Nanoseconds | undefined): Nanoseconds {
  return theirs !== undefined && theirs < ours ? theirs : ours;
}
