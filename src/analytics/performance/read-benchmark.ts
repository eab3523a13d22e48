import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { parse } from "csv-parse";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { type Nanoseconds, parseTime, timestampMax, timestampMin } from "../../model/time.ts";

/** The prices of a benchmark, in the order of time. */
export interface BenchmarkPrices {
  /** As it was named. */
  readonly file: string;
  /** The line of the first price. */
  readonly line: number;
  readonly ts: readonly Nanoseconds[];
  readonly price: readonly number[];
}

const columns = ["timestamp", "price"];
const hint = "Provide a CSV file with the columns timestamp and price, in the order of time.";

/**
 * Reads a CSV file with the columns `timestamp` (RFC 3339, UTC where it has no offset, or UNIX nanoseconds) and `price`;
 * others are not looked at. Throws `invalid_argument` with file and line for what is not such a file.
 */
export async function readBenchmark(file: string, signal?: AbortSignal): Promise<BenchmarkPrices> {
  const ts: Nanoseconds[] = [];
  const price: number[] = [];
  let first = 0;
  const parser = parse({ columns: headerOf(file), bom: true, skip_empty_lines: true, info: true });
  const piped = pipeline(createReadStream(file), parser, { signal });
  // a failure of the file reaches the reader below through the parser; this only keeps it from being unhandled
  piped.catch(() => undefined);
  try {
    for await (const { record, info } of parser as AsyncIterable<Item>) {
      const { lines: line } = info;
      const at = timeOf(record.timestamp ?? "", file, line);
      if (ts.length > 0 && at <= ts.at(-1)!) {
        throw refusal("a price is not later than the one before it", file, line);
      }
      if (ts.length === 0) first = line;
      ts.push(at);
      price.push(priceOf(record.price ?? "", file, line));
    }
  } catch (thrown) {
    if (thrown instanceof RunvaultError) throw thrown;
    signal?.throwIfAborted();
    const { message, lines } = thrown as Error & { readonly lines?: number };
    throw refusal(`the benchmark cannot be read: ${message}`, file, lines, thrown);
  } finally {
    parser.destroy();
  }
  if (ts.length < 2) throw refusal("the benchmark has fewer than two prices", file);
  return { file, line: first, ts, price };
}

interface Item {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

function headerOf(file: string): (names: string[]) => string[] {
  return (names) => {
    const trimmed = names.map((name) => name.trim());
    const missing = columns.find((column) => !trimmed.includes(column));
    if (missing === undefined) return trimmed;
    const near = nearestName(missing, trimmed);
    const meant = near === null ? "" : `; did you mean ${JSON.stringify(near)} to be it?`;
    throw refusal(`the benchmark has no column ${missing}${meant}`, file, 1);
  };
}

function timeOf(text: string, file: string, line: number): Nanoseconds {
  try {
    const at = parseTime(text.trim());
    if (at >= timestampMin && at <= timestampMax) return at;
  } catch (thrown) {
    throw RunvaultError.from(thrown).at({ file, line });
  }
  throw refusal(`not a time that rows can have: ${JSON.stringify(text)}`, file, line);
}

function priceOf(text: string, file: string, line: number): number {
  const price = /^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (price > 0 && Number.isFinite(price)) return price;
  throw refusal(`not a price above zero: ${JSON.stringify(text)}`, file, line);
}

function refusal(message: string, file: string, line?: number, cause?: unknown): RunvaultError {
  const place = line === undefined ? { file } : { file, line };
  return new RunvaultError("invalid_argument", message, { place, hint, cause });
}
