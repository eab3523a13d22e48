import { access } from "node:fs/promises";
import { extname } from "node:path";
import { readInstruments } from "../../analytics/instruments/read-instruments.ts";
import type { MeasureOptions } from "../../analytics/metrics/measure-runs.ts";
import type { Benchmark } from "../../analytics/section/metrics-options.ts";
import { readBenchmark } from "../../analytics/section/read-benchmark.ts";
import { readRates } from "../../analytics/section/read-rates.ts";
import { type Archive, openArchive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { manifestsOf } from "../list/manifests-of.ts";
import type { MetricsValues } from "../options/metrics-values.ts";
import type { Session } from "../process/session.ts";

/** The runs and settings to compute figures for. */
export interface AskedFigures {
  readonly archive: Archive;
  readonly manifests: readonly Manifest[];
  readonly options: MeasureOptions;
}

/**
 * Opens what `figureOptions` name. Throws `not_archived` with the nearest run, and errors of a benchmark or instruments
 * file.
 */
export async function askedFigures(
  runs: readonly RunRef[],
  values: MetricsValues,
  session: Session,
): Promise<AskedFigures> {
  const archive = await openArchive(values.archive);
  const manifests = await namedManifests(archive, runs);
  const {
    archive: _,
    runs: __,
    periods,
    instruments,
    window,
    memory,
    benchmark,
    rates,
    bookAge,
    ...others
  } = values;
  return {
    archive,
    manifests,
    options: {
      ...others,
      bookAgeMs: bookAge,
      periods: periods ?? null,
      window: window ?? null,
      instruments: instruments === undefined ? null : await readInstruments(instruments),
      benchmark: benchmark === undefined ? null : await benchmarkOf(benchmark, session.signal),
      rates: rates === undefined ? null : await readRates(rates, session.signal),
      memoryLimitMb: memory,
      signal: session.signal,
    },
  };
}

async function namedManifests(archive: Archive, runs: readonly RunRef[]): Promise<readonly Manifest[]> {
  try {
    return await manifestsOf(archive, runs);
  } catch (error) {
    if (!(error instanceof RunvaultError) || error.code !== "not_archived") throw error;
    const { instance = "", run = "" } = error.place;
    const known = (await archive.manifests()).map(formatRun);
    const near = nearestName(formatRun({ instanceId: instance, runId: run }), known);
    throw near === null ? error : error.advising(`Did you mean ${near}? ${error.hint}`);
  }
}

/** A file if it exists or the name looks like one; else a symbol. */
async function benchmarkOf(named: string, signal: AbortSignal): Promise<Benchmark> {
  const isFile =
    extname(named).toLowerCase() === ".csv" ||
    (await access(named).then(
      () => true,
      () => false,
    ));
  return isFile
    ? { kind: "prices", prices: await readBenchmark(named, signal) }
    : { kind: "symbol", symbol: named };
}
