import type { DuckDBConnection } from "@duckdb/node-api";
import { literal } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { BarSource } from "../instruments/instrument.ts";
import { barsOfSymbol } from "../instruments/resolve-instruments.ts";
import { readBarFacts } from "../instruments/run-facts.ts";
import { instantOf, macroRows } from "../section/macro-rows.ts";
import type { MetricsOptions } from "../section/metrics-options.ts";
import type { BenchmarkPrices } from "../section/read-benchmark.ts";
import type { MeasuredRun } from "../section/section.ts";

const batch = 2_000;

/** Makes the macro `benchmark_prices` return these prices. */
export async function writeBenchmark(
  connection: DuckDBConnection,
  { ts, price }: BenchmarkPrices,
): Promise<void> {
  await connection.run("CREATE OR REPLACE TABLE benchmark (ts TIMESTAMP_NS, price DOUBLE)");
  for (let at = 0; at < ts.length; at += batch) {
    const rows = ts
      .slice(at, at + batch)
      .map((time, index) => `(make_timestamp_ns(${time}::BIGINT), CAST('${price[at + index]}' AS DOUBLE))`);
    await connection.run(`INSERT INTO benchmark VALUES ${rows.join(", ")}`);
  }
  await connection.run(
    "CREATE OR REPLACE MACRO benchmark_prices() AS TABLE SELECT b.ts, b.price FROM benchmark b",
  );
}

/**
 * The bars of a benchmark symbol: its only ones, or those in the first matching entry of the instruments file, whatever
 * the venue. Null if the benchmark is not a symbol. Throws `invalid_argument` if the run has no bars of the symbol, or
 * several without a choice.
 */
export async function benchmarkBars(
  connection: DuckDBConnection,
  run: RunRef,
  { benchmark, instruments }: MetricsOptions,
): Promise<BarSource | null> {
  if (benchmark?.kind !== "symbol") return null;
  const facts = { run, bars: await readBarFacts(connection) };
  const source = barsOfSymbol(facts, benchmark.symbol, instruments);
  if (source !== null) return source;
  const symbols = [...new Set(facts.bars.map(({ symbol }) => symbol))];
  const near = nearestName(benchmark.symbol, symbols);
  const has =
    symbols.length === 0 ? "The run has no bars." : `It has bars of ${symbols.slice(0, 5).join(", ")}.`;
  throw new RunvaultError("invalid_argument", `the run has no bars of ${JSON.stringify(benchmark.symbol)}`, {
    place: { instance: run.instanceId, run: run.runId },
    hint: `${near === null ? has : `Did you mean ${near}?`} To name a file of prices, include its ending, .csv.`,
  });
}

/** The macros' arguments for a benchmark symbol. */
export function benchmarkArguments({ benchmarkBars: source }: MeasuredRun): Readonly<Record<string, string>> {
  return source === null
    ? {}
    : {
        benchmark: literal(source.symbol),
        benchmark_venue: literal(source.venue),
        benchmark_interval: String(source.intervalNs),
      };
}

/** Seconds and milliseconds that are taken for nanoseconds are before it. */
const year1971 = 31_536_000_000_000_000n;

/** Throws `invalid_argument` if no period of a run that has returns lies within the benchmark's prices. */
export async function requireOverlap(measured: MeasuredRun): Promise<void> {
  const { run, options } = measured;
  const { benchmark } = options;
  if (benchmark === null) return;
  const place = { instance: run.instanceId, run: run.runId };
  const [own] = await macroRows(measured, {
    macro: "session_returns",
    select: "epoch_ns(min(ts)) AS first, epoch_ns(max(ts)) AS last",
    keyless: true,
  });
  if (own === undefined || own.first === null) return;
  const paired = await macroRows(measured, {
    macro: "benchmark_returns",
    select: "i",
    more: benchmarkArguments(measured),
    rest: "LIMIT 1",
  });
  if (paired.length > 0) return;
  const span = (from: bigint, to: bigint) => `from ${formatTime(from)} to ${formatTime(to)}`;
  const returns = span(instantOf(own.first), instantOf(own.last));
  const { file, line, ts } =
    benchmark.kind === "prices" ? benchmark.prices : { file: undefined, line: undefined, ts: [] };
  const its = ts.length === 0 ? "" : `, ${span(ts[0]!, ts.at(-1)!)}`;
  throw new RunvaultError(
    "invalid_argument",
    `the benchmark${its} does not overlap the returns of the run, ${returns}`,
    {
      place: file === undefined ? place : { file, line: line! },
      hint: `Provide prices for the time of the run.${ts.length > 0 && ts.at(-1)! < year1971 ? " A timestamp that is a number is UNIX nanoseconds." : ""}`,
    },
  );
}

/** A note if the benchmark's prices end before the run does. */
export async function benchmarkNotes(measured: MeasuredRun): Promise<readonly string[]> {
  const { benchmark } = measured.options;
  if (benchmark?.kind !== "prices") return [];
  const end = benchmark.prices.ts.at(-1)!;
  // in each series, all returns but the first begin where another ends
  const [behind] = await macroRows(measured, {
    macro: "session_points",
    select: `CAST(count(*) FILTER (WHERE i > 1 AND epoch_ns(begins) >= ${end}) AS INTEGER) AS later`,
    keyless: true,
  });
  const later = Number(behind?.later ?? 0);
  if (later === 0) return [];
  return [
    `the benchmark's last price is from ${formatTime(end)}: ${countText(later, "later return")} of the run ${later === 1 ? "has" : "have"} nothing to compare with`,
  ];
}
