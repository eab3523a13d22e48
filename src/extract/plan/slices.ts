import { bucketAt, type Grain } from "../../archive/bucket.ts";
import type { Table } from "../../model/profile/table.ts";
import type { AskedRun } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { Slice } from "../fetch/slice.ts";
import type { CountRows } from "../run/run-horizon.ts";
import type { Window } from "./held-window.ts";

/** What to fetch of a table. */
export interface SlicePlan {
  readonly grain: Grain;
  /** Windows that are not held, in order and disjoint. */
  readonly gaps: readonly Window[];
  /** The table's whole time span, and the rows in it. */
  readonly span: Window;
  readonly spanRows: number;
  /** The end of the grid, after the last known row; everything later is one slice. */
  readonly rowsTo: Nanoseconds;
  /** Step of the grid at which slices are cut, counted from the start of the span; at least 1. */
  readonly stepNs: Nanoseconds;
}

/**
 * The slices to fetch, generated on demand: the gaps, cut at buckets and at a grid that depends only on the span, so an
 * interrupted job cuts where an undisturbed one does.
 */
export function* slicesOf(run: AskedRun, table: Table, plan: SlicePlan): Generator<Slice> {
  const { grain, gaps, span, stepNs, rowsTo } = plan;
  for (const gap of gaps) {
    for (let from = gap.from; from < gap.to; ) {
      const bucket = bucketAt(grain, from);
      const gridNext = span.from + ((from - span.from) / stepNs + 1n) * stepNs;
      const to = smallest(gap.to, from < rowsTo ? smallest(gridNext, rowsTo) : undefined, bucket.to);
      const isAll = from === span.from && to === span.to;
      yield { run, table, bucket: bucket.name, from, to, expected: isAll ? plan.spanRows : undefined };
      from = to;
    }
  }
}

/** A slice with the gateway's row count, if it counts; null if there are no rows to fetch. */
export async function countSlice(slice: Slice, countRows: CountRows | undefined): Promise<Slice | null> {
  // facts with times but without rows are contradictory, so the rows are requested
  if (slice.expected !== undefined) return slice;
  const expected = await countRows?.(slice.from, slice.to);
  return expected === 0 ? null : { ...slice, expected };
}

/** True if anything is to be fetched in the bucket of an instant. */
export function isBucketToFetch({ grain, gaps }: SlicePlan, ts: Nanoseconds): boolean {
  const { from, to } = bucketAt(grain, ts);
  return gaps.some((gap) => (to === undefined || gap.from < to) && (from === undefined || gap.to > from));
}

export function smallest(...times: (Nanoseconds | undefined)[]): Nanoseconds {
  return times.filter((time) => time !== undefined).reduce((a, b) => (a < b ? a : b));
}
