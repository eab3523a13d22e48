import { RunvaultError } from "../../model/error.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { timedRows } from "./timed-rows.ts";

/** The prices of a benchmark, in the order of time. */
export interface BenchmarkPrices {
  /** Its name as given. */
  readonly file: string;
  /** The line of the first price. */
  readonly line: number;
  readonly ts: readonly Nanoseconds[];
  readonly price: readonly number[];
}

const benchmarkFile = {
  what: "the benchmark",
  columns: ["timestamp", "price"],
  isStrict: false,
  hint: "Provide a CSV file with the columns timestamp and price, in time order.",
} as const;

/**
 * Reads a CSV file with the columns `timestamp` (RFC 3339, UTC without an offset, or UNIX nanoseconds) and `price`;
 * ignores others. Throws `invalid_argument` with file and line for an invalid file.
 */
export async function readBenchmark(file: string, signal?: AbortSignal): Promise<BenchmarkPrices> {
  const ts: Nanoseconds[] = [];
  const price: number[] = [];
  let first = 0;
  for await (const { at, line, cells, refusal } of timedRows(file, benchmarkFile, signal)) {
    if (ts.length > 0 && at <= ts.at(-1)!) throw refusal("a price is not later than the one before");
    if (ts.length === 0) first = line;
    const text = cells.price ?? "";
    const value = /^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
    if (!(value > 0 && Number.isFinite(value)))
      throw refusal(`not a price above zero: ${JSON.stringify(text)}`);
    ts.push(at);
    price.push(value);
  }
  if (ts.length < 2) {
    const { hint } = benchmarkFile;
    throw new RunvaultError("invalid_argument", "the benchmark has fewer than two prices", {
      place: { file },
      hint,
    });
  }
  return { file, line: first, ts, price };
}
