import { type Bucket, bucketAt, chooseGrain, type Grain } from "../archive/bucket.ts";
import type { Segment } from "../archive/manifest.ts";
import type { HeldTable } from "../archive/pending.ts";
import type { RunRef } from "../model/source.ts";
import type { Table } from "../model/table.ts";
import { int64Max, type Nanoseconds } from "../model/time.ts";
import type { Slice } from "./fetch-slice.ts";

/** Rows in a window by the gateway's facts. */
export type CountRows = (from: Nanoseconds, to: Nanoseconds) => Promise<number>;

/** What a table holds, by facts or by a survey. */
export interface TableExtent {
  readonly rows: number;
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
  readonly final: boolean;
}

/** A window of ts_event that is covered, with all rows that came from it. */
export interface HeldWindow {
  readonly from: Nanoseconds;
  readonly to: Nanoseconds;
  /** Rows of segments and rows set aside. */
  readonly rows: number;
  readonly segments: readonly Segment[];
}

/** The windows a table's segments cover, in order; parts of one unsorted answer are one window. */
export function heldWindows(held: HeldTable): HeldWindow[] {
  const windows = new Map<string, Segment[]>();
  for (const segment of held.segments) {
    const key = `${segment.from} ${segment.to}`;
    windows.set(key, [...(windows.get(key) ?? []), segment]);
  }
  const aside = new Map(held.quarantine.map(({ segment, rows }) => [segment, rows]));
  return [...windows.values()].map((segments) => {
    const { from, to } = segments[0]!;
    const rows = segments.reduce((sum, { file, rows }) => sum + rows + (aside.get(file) ?? 0), 0);
    return { from: BigInt(from), to: BigInt(to), rows, segments };
  });
}

/**
 * The held windows whose rows changed at the gateway since (late rows, corrections), found by halving the range while
 * the counts differ. Equal counts are taken as unchanged.
 */
export async function changedWindows(
  windows: readonly HeldWindow[],
  countRows: CountRows,
): Promise<HeldWindow[]> {
  const changed: HeldWindow[] = [];
  for (const stretch of contiguous(windows)) changed.push(...(await changedWithin(stretch, countRows)));
  return changed;
}

async function changedWithin(windows: readonly HeldWindow[], countRows: CountRows): Promise<HeldWindow[]> {
  const held = windows.reduce((sum, { rows }) => sum + rows, 0);
  if ((await countRows(windows[0]!.from, windows.at(-1)!.to)) === held) return [];
  if (windows.length === 1) return [...windows];
  const middle = windows.length >> 1;
  return [
    ...(await changedWithin(windows.slice(0, middle), countRows)),
    ...(await changedWithin(windows.slice(middle), countRows)),
  ];
}

function contiguous(windows: readonly HeldWindow[]): HeldWindow[][] {
  const stretches: HeldWindow[][] = [];
  for (const window of windows) {
    const stretch = stretches.at(-1);
    if (stretch?.at(-1)?.to === window.from) stretch.push(window);
    else stretches.push([window]);
  }
  return stretches;
}

/** The grain of a table's buckets: decided before, or by its extent now. */
export function grainOf(held: HeldTable, extent: TableExtent): Grain {
  if (held.grain !== null) return held.grain;
  if (extent.first === undefined || extent.last === undefined) return extent.final ? "all" : "year";
  return chooseGrain({ rows: extent.rows, first: extent.first, last: extent.last, final: extent.final });
}

/**
 * The windows still to fetch, cut at buckets and at a grid that depends on the extent alone, so that an interrupted
 * job cuts where an undisturbed one does. `until` is the horizon of a run that goes on. After a survey, which asked for
 * all at once, there are two slices at least: a second pass has to ask in another way.
 */
export async function planSlices(input: {
  run: RunRef;
  table: Table;
  extent: TableExtent;
  grain: Grain;
  windows: readonly HeldWindow[];
  until: Nanoseconds | undefined;
  sliceRows: number;
  countRows: CountRows | undefined;
  /** True when the extent comes from a survey. */
  surveyed: boolean;
}): Promise<Slice[]> {
  const { run, table, extent, grain, windows, until, sliceRows, countRows, surveyed } = input;
  if (extent.first === undefined || extent.last === undefined) return [];
  const end = until ?? smallest(extent.last + 1n, int64Max);
  const span = end - extent.first;
  const most = surveyed ? (span + 1n) / 2n : span;
  const stepNs =
    extent.rows <= sliceRows ? most : smallest(most, (span * BigInt(sliceRows)) / BigInt(extent.rows) + 1n);
  const slices: Slice[] = [];
  for (const gap of gapsBetween(windows, extent.first, end)) {
    for (let from = gap.from; from < gap.to; ) {
      const bucket: Bucket = bucketAt(grain, from);
      const gridNext = extent.first + ((from - extent.first) / stepNs + 1n) * stepNs;
      const to = smallest(gap.to, gridNext, bucket.to);
      slices.push({ run, table, bucket: bucket.name, from, to, expected: undefined });
      from = to;
    }
  }
  const [only] = slices;
  if (slices.length === 1 && windows.length === 0) return [{ ...only!, expected: extent.rows }];
  if (countRows === undefined) return slices;
  const counted: Slice[] = [];
  for (const slice of slices) {
    const expected = await countRows(slice.from, slice.to);
    if (expected > 0) counted.push({ ...slice, expected });
  }
  return counted;
}

function gapsBetween(windows: readonly HeldWindow[], from: Nanoseconds, to: Nanoseconds) {
  const gaps: { from: Nanoseconds; to: Nanoseconds }[] = [];
  let at = from;
  for (const window of windows) {
    if (window.from > at) gaps.push({ from: at, to: smallest(window.from, to) });
    if (window.to > at) at = window.to;
  }
  if (at < to) gaps.push({ from: at, to });
  return gaps.filter((gap) => gap.from < gap.to);
}

function smallest(...times: (Nanoseconds | undefined)[]): Nanoseconds {
  return times.filter((time) => time !== undefined).reduce((a, b) => (a < b ? a : b));
}
