import PQueue from "p-queue";
import type { SegmentConverter } from "../../archive/convert/convert-segments.ts";
import { duckDBConverter } from "../../archive/convert/duckdb-form.ts";
import type { JobDuckDB, JobMeans } from "../../duckdb/job-duckdb.ts";
import { BufferPool } from "../fetch/buffer-pool.ts";
import type { SliceQueue } from "../fetch/slice-queue.ts";
import type { Flight } from "./in-flight.ts";
import { ManyConversions } from "./many-conversions.ts";

/** Shared by all jobs on one source, each for one run. */
export interface JobsMeans {
  /** Row answers in progress. */
  readonly slices: SliceQueue;
  readonly pool: BufferPool;
  /** The converter for one job, whose signal ends only its own conversions. */
  readonly converterOf: (means: JobMeans, signal: AbortSignal) => SegmentConverter;
  /** Call when no other job may be coming. */
  readonly hurry: () => void;
}

/** A job among others: its place in their order, and its signals that others may begin beside it. */
export interface PlaceAmongJobs extends Flight {
  readonly means: JobsMeans;
  readonly order: number;
}

/** Buffers that slices are fetched into: each holds a segment and the line that crosses its end. */
function buffersFor(concurrency: number, segmentBytes: number): BufferPool {
  return new BufferPool(concurrency + 2, segmentBytes + (1 << 20));
}

export interface Fetching {
  /** Slices in flight. */
  readonly concurrency: number;
  readonly segmentBytes: number;
}

/** The means of a single job. */
export function meansOfOne(duckdb: JobDuckDB, { concurrency, segmentBytes }: Fetching): JobsMeans {
  return {
    slices: new PQueue({ concurrency }),
    pool: buffersFor(concurrency, segmentBytes),
    converterOf: (means, signal) => (conversion) =>
      duckdb.inTurn(means, signal, ({ connection }) => duckDBConverter(connection)(conversion)),
    hurry: () => {},
  };
}

/** The means of many jobs, whose small conversions are done together. `pauseMs`: how long these wait for more. */
export function meansOfMany(
  duckdb: JobDuckDB,
  fetching: Fetching,
  pauseMs: () => number,
  signal: AbortSignal,
): JobsMeans {
  const conversions = new ManyConversions(duckdb, pauseMs, signal);
  return {
    ...meansOfOne(duckdb, fetching),
    converterOf: (means, own) => conversions.of(means, own),
    hurry: () => conversions.hurry(),
  };
}
