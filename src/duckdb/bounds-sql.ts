import { type TimeBounds, timestampMax, timestampMin } from "../model/time.ts";

/** Tests of `ts_event` for rows within the bounds. Bounds outside what a timestamp can be are open, or leave nothing. */
export function boundsSql({ from, to }: TimeBounds): string[] {
  const tests: string[] = [];
  if (from !== undefined && from > timestampMin) {
    tests.push(from > timestampMax ? "false" : `ts_event >= make_timestamp_ns(${from})`);
  }
  if (to !== undefined && to <= timestampMax) {
    tests.push(to < timestampMin ? "false" : `ts_event < make_timestamp_ns(${to})`);
  }
  return tests;
}
